#pragma once

#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// The paths that answer, one for each API.
void add_answer_routes(Router& router, ServingContext& context);

}  // namespace anyslot::server

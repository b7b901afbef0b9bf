#pragma once

#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Adds /tokenize and /detokenize.
void add_text_routes(Router& router, ServingContext& context);

}  // namespace anyslot::server

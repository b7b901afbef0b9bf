#pragma once

#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Anthropic's /v1/messages/count_tokens: how many tokens the prompt of a request has.
void add_count_route(Router& router, ServingContext& context);

}  // namespace anyslot::server

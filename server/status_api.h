#pragma once

#include <functional>

#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Adds /v1/models, /health, /ready and /metrics. `draining`: the server shuts down.
void add_status_routes(Router& router, ServingContext& context, std::function<bool()> draining);

}  // namespace anyslot::server

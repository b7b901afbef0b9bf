#pragma once

#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Adds /v1/documents: register, list, pin, unpin and remove. A tenant sees its own documents only.
void add_documents_routes(Router& router, ServingContext& context);

}  // namespace anyslot::server

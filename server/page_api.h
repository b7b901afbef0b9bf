#pragma once

#include "router.h"

namespace anyslot::server {

/// Adds the page: / and the files that it loads, which need no key, and /page/server.json, which
/// tells it whether it must ask the user for one. `needs_key`: the server has keys.
void add_page_routes(Router& router, bool needs_key);

}  // namespace anyslot::server

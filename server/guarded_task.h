#pragma once

#include "log.h"
#include "serving_context.h"

namespace anyslot::server {

/// `task` for a thread that must go on: what it throws is logged. It is then let go, and whatever
/// sink it holds with it, so that the client is answered.
Task guarded(Task task, Logger log);

}  // namespace anyslot::server

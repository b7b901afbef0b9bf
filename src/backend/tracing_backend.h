#pragma once

#include <memory>

#include "backend/ops.h"
#include "base/trace_file.h"

namespace anyslot {

/// A backend that hands every operation on and adds an event for each one from begin_step to
/// end_step, and for copy_blocks, to `trace`: named as the operation, with its sizes. What loads a
/// model or allocates memory has no event. Nothing is recorded for later steps (run_recorded), so
/// that each of them shows its operations; on a GPU an event is the time that starting it took.
std::unique_ptr<Backend> create_tracing_backend(std::unique_ptr<Backend> inner,
                                                std::shared_ptr<TraceFile> trace);

}  // namespace anyslot

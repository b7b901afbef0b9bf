#pragma once

#include <memory>

#include "anyslot/request.h"
#include "engine/engine_parts.h"
#include "sched/sequence.h"

namespace anyslot::internal {

/// Checks a request, tokenizes it and expands it into spans. Thread-safe; runs on the caller's
/// thread.
Expected<std::unique_ptr<Sequence>> prepare_request(const Request& request,
                                                    const EngineParts& parts, TokenMemo& memo);

}  // namespace anyslot::internal

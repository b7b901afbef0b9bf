#pragma once

#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "engine/engine_parts.h"
#include "sched/given_request.h"

namespace anyslot::internal {

/// Checks a request, tokenizes it and expands it into spans. Thread-safe; runs on the caller's
/// thread.
Expected<GivenRequest> prepare_request(const Request& request, const EngineParts& parts,
                                       TokenMemo& memo);

/// The same for a document that is to be encoded ahead of its use.
Expected<GivenRequest> prepare_document(const Segment& document, const DocumentOptions& options,
                                        const EngineParts& parts, TokenMemo& memo);

}  // namespace anyslot::internal

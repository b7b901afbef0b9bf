#pragma once

#include <memory>
#include <vector>

#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "engine/engine_parts.h"
#include "sched/sequence.h"

namespace anyslot::internal {

/// Checks a request, tokenizes it and expands it into spans: one sequence per choice, without their
/// ids. Thread-safe; runs on the caller's thread.
Expected<std::vector<std::unique_ptr<Sequence>>> prepare_request(const Request& request,
                                                                 const EngineParts& parts,
                                                                 TokenMemo& memo);

/// The same for a document that is to be encoded ahead of its use.
Expected<std::unique_ptr<Sequence>> prepare_document(const Segment& document,
                                                     const DocumentOptions& options,
                                                     const EngineParts& parts, TokenMemo& memo);

}  // namespace anyslot::internal

#pragma once

#include <string>
#include <vector>

#include "answer_request.h"
#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "anyslot/status.h"
#include "document_fields.h"

// What requests that have been read become for the engine.

namespace anyslot::server {

/// Documents as they stand in prompts of the model: with a title through its template, bare ones
/// as they are.
Expected<std::vector<Segment>> document_segments(const Engine& engine,
                                                 const std::vector<DocumentInput>& inputs);

/// The request for the engine: its prompt is put together by the model's templates. `tenant`: the
/// one that asks; empty: there are none.
Expected<Request> engine_request(const Engine& engine, const AnswerRequest& request,
                                 const std::string& tenant);

}  // namespace anyslot::server

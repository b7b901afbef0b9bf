#pragma once

#include <functional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "completion.h"
#include "input_rows.h"

namespace anyslot::cli {

/// The request of a row: its documents rendered through the model's template, or its segments as
/// they are.
Expected<Request> request_of(const Engine& engine, const InputRow& row,
                             const SamplingParams& sampling);

/// Answers rows with up to `concurrency` requests in the engine at once. `done` is called on this
/// thread, in the order of the rows. Stops at the first failure, of a row (named by `input`, line
/// and id) or of `done`, and cancels what is running.
Status run_rows(Engine& engine, const std::vector<InputRow>& rows, const SamplingParams& sampling,
                int concurrency, const std::string& input,
                const std::function<Status(const InputRow&, const Completion&)>& done);

}  // namespace anyslot::cli

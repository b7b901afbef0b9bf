#pragma once

#include <cstdint>

#include "backend/ops.h"

// Backend::choose_experts in host memory, in its steps: the middle one may run on several threads.

namespace anyslot {

/// Checks the operands and makes room.
Status begin_choice(const TensorView& logits, const ExpertChoice& choice, ExpertRows& result);
/// The experts of row r and their shares.
void choose_of_row(const TensorView& logits, const ExpertChoice& choice, int64_t r,
                   ExpertRows& result);
/// Groups the rows by their experts.
void group_by_expert(int64_t num_experts, const ExpertChoice& choice, ExpertRows& result);

}  // namespace anyslot

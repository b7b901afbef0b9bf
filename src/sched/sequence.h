#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "anyslot/result.h"
#include "sched/given_request.h"
#include "sched/sequence_span.h"

namespace anyslot {

/// One choice of a request in the scheduler; or a document that is encoded ahead of its use: that
/// has no text, and ends when the document is ready. Small until it is admitted, since many may
/// wait.
struct Sequence {
  uint64_t id = 0;          // in order of arrival
  uint64_t request_id = 0;  // id of its choice 0
  int choice = 0;
  std::shared_ptr<const GivenRequest> given;
  std::vector<int32_t> answer;
  std::vector<SequenceSpan> spans;  // none before its first admission was tried
  std::vector<bool> pins_made;      // of each document of choice 0, which pins for all
  Usage usage;                      // token counts: set when first admitted
  /// Its reuse is on the books: it was admitted before, or choice 0 speaks for it.
  bool usage_known = false;

  bool has_answer() const { return given->has_answer; }
  const SamplingParams& sampling() const { return given->sampling; }
  std::span<const int32_t> prompt() const { return given->prompt; }
  std::span<const int32_t> generated() const { return answer; }
  int64_t num_generated() const { return static_cast<int64_t>(answer.size()); }
  int64_t num_tokens() const { return given->num_prompt_tokens() + num_generated(); }
  int32_t token(int64_t position) const {
    const int64_t in_answer = position - given->num_prompt_tokens();
    return in_answer < 0 ? given->prompt[static_cast<size_t>(position)]
                         : answer[static_cast<size_t>(in_answer)];
  }
  SequenceSpan& last_span() { return spans.back(); }
  const SequenceSpan& last_span() const { return spans.back(); }
  /// Everything but the newest token has its KV.
  bool is_decoding() const {
    return num_generated() > 0 && last_span().num_computed + 1 == last_span().num_tokens() &&
           std::all_of(spans.begin(), spans.end() - 1,
                       [](const SequenceSpan& span) { return span.is_complete(); });
  }
  bool wants_prompt_logits() const { return choice == 0 && given->prompt_logits; }
  bool wants_logits_of(int64_t position) const {
    return wants_prompt_logits() &&
           std::any_of(given->text_ranges.begin(), given->text_ranges.end(),
                       [position](const TokenRange& range) { return range.contains(position); });
  }
};

/// Choices 0 to n - 1 of a request; choice 0 alone reports what was reused. The caller sets the
/// ids.
std::vector<std::unique_ptr<Sequence>> make_choices(
    const std::shared_ptr<const GivenRequest>& given, int n);

}  // namespace anyslot

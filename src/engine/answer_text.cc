#include "engine/answer_text.h"

#include <utility>

namespace anyslot::internal {

AnswerText::AnswerText(std::shared_ptr<const Tokenizer> tokenizer, const SamplingParams& sampling,
                       std::shared_ptr<const StopPatterns> stops)
    : tokenizer_(std::move(tokenizer)),
      detokenizer_(*tokenizer_),
      stops_(std::move(stops), sampling.include_stop_in_output),
      show_stop_token_(sampling.include_stop_in_output),
      tokens_before_stop_(sampling.min_tokens) {}

std::string AnswerText::add(int32_t token, bool is_stop_token) {
  const bool may_stop = tokens_before_stop_ == 0;
  if (!may_stop) --tokens_before_stop_;
  if (is_stop_token && !show_stop_token_) return {};
  return stops_.push(detokenizer_.push(token), may_stop && !is_stop_token);
}

std::string AnswerText::finish() {
  std::string text = stops_.push(detokenizer_.flush(), /*may_match=*/false);
  return text + stops_.flush();
}

}  // namespace anyslot::internal

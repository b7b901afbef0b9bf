#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "anyslot/request.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace anyslot::internal {

/// The text of one choice, made as its tokens come, with stop strings found and taken out.
class AnswerText {
 public:
  /// `stops`: those of the request; null for none.
  AnswerText(std::shared_ptr<const Tokenizer> tokenizer, const SamplingParams& sampling,
             std::shared_ptr<const StopPatterns> stops);

  /// The text that is certain now. Empty for a stop token that is not to be shown.
  std::string add(int32_t token, bool is_stop_token);
  /// The rest, when the answer ends without a stop string.
  std::string finish();

  /// The index of the stop string that ended the text; nothing may be added then.
  std::optional<size_t> stop_string() const { return stops_.match(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;  // a stream may outlive its engine
  StreamingDetokenizer detokenizer_;
  StopMatcher stops_;
  bool show_stop_token_;
  int64_t tokens_before_stop_;  // still to come before a stop string counts
};

}  // namespace anyslot::internal

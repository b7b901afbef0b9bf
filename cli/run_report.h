#pragma once

#include <optional>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "completion.h"
#include "input_rows.h"

namespace anyslot::cli {

/// The line of JSON that `anyslot run` writes for one row, with its newline.
std::string row_output(const InputRow& row, const Completion& completion, Method method);

/// Adds up the rows of a run.
class RunSummary {
 public:
  void add(const InputRow& row, const Completion& completion);

  /// One JSON object on one line: requests, exact_match, contains_match and f1 (means over the rows
  /// with answers; null when there are none), ttft_ms {median, p95}, cached_token_ratio,
  /// kv_tokens_read, prompt_tokens_per_second, output_tokens_per_second (over `seconds`, the time
  /// of the whole run).
  std::string text(double seconds, int64_t kv_tokens_read) const;

 private:
  int64_t scored_ = 0;
  double exact_match_ = 0;
  double contains_match_ = 0;
  double f1_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int64_t completion_tokens_ = 0;
  std::vector<double> ttft_ms_;  // one per request
};

}  // namespace anyslot::cli

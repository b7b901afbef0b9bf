#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anyslot::cli {

/// The normalization of the SQuAD evaluation (arXiv 1606.05250): lower case, without ASCII
/// punctuation, without the words a, an and the, one space between words. Invalid UTF-8 bytes are
/// kept as they are.
std::string normalize_answer(std::string_view text);

/// How well an output fits the best of the right answers.
struct AnswerScore {
  bool exact_match = false;     // equal after normalization
  bool contains_match = false;  // the normalized answer stands in the normalized output
  double f1 = 0;                // of the bags of words
};

/// The best over `answers`, each number for itself. All zero without answers.
AnswerScore score_answer(std::string_view output, const std::vector<std::string>& answers);

}  // namespace anyslot::cli

#include "answer_metrics.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>

namespace anyslot::cli {
namespace {

bool is_word_character(utf8proc_int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

bool is_space(utf8proc_int32_t c) {
  if ((c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f) || c == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_ascii_punctuation(utf8proc_int32_t c) {
  return (c >= 0x21 && c <= 0x2f) || (c >= 0x3a && c <= 0x40) || (c >= 0x5b && c <= 0x60) ||
         (c >= 0x7b && c <= 0x7e);
}

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

/// Collects characters into words; a run of word characters that is an article turns into a space.
class Normalizer {
 public:
  void add_character(std::string_view bytes, bool word_character) {
    if (word_character != in_run_) end_run();
    in_run_ = word_character;
    run_ += bytes;
  }
  void add_space() {
    end_run();
    pending_space_ = true;
  }
  std::string finish() {
    end_run();
    return std::move(out_);
  }

 private:
  void end_run() {
    if (in_run_ && is_article(run_)) {
      pending_space_ = true;
    } else if (!run_.empty()) {
      if (pending_space_ && !out_.empty()) out_ += ' ';
      pending_space_ = false;
      out_ += run_;
    }
    run_.clear();
  }

  std::string out_;
  std::string run_;  // characters that are all of words, or all not
  bool in_run_ = false;
  bool pending_space_ = false;
};

std::vector<std::string_view> words_of(std::string_view normalized) {
  std::vector<std::string_view> words;
  while (!normalized.empty()) {
    const size_t end = std::min(normalized.find(' '), normalized.size());
    if (end > 0) words.push_back(normalized.substr(0, end));
    normalized.remove_prefix(std::min(end + 1, normalized.size()));
  }
  return words;
}

double f1_of(std::string_view output, std::string_view answer) {
  const std::vector<std::string_view> predicted = words_of(output);
  const std::vector<std::string_view> right = words_of(answer);
  if (predicted.empty() || right.empty()) return predicted.empty() && right.empty() ? 1 : 0;
  std::map<std::string_view, int> bag;
  for (std::string_view word : right) ++bag[word];
  int common = 0;
  for (std::string_view word : predicted) {
    if (auto it = bag.find(word); it != bag.end() && it->second-- > 0) ++common;
  }
  return 2.0 * common / static_cast<double>(predicted.size() + right.size());
}

}  // namespace

std::string normalize_answer(std::string_view text) {
  Normalizer normalizer;
  while (!text.empty()) {
    utf8proc_int32_t c = -1;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    utf8proc_ssize_t size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &c);
    if (size <= 0) {
      size = 1;
      normalizer.add_character(text.substr(0, 1), false);
    } else if (is_space(c)) {
      normalizer.add_space();
    } else if (!is_ascii_punctuation(c)) {
      utf8proc_uint8_t lower[4];
      const utf8proc_int32_t lowered = utf8proc_tolower(c);
      const utf8proc_ssize_t length = utf8proc_encode_char(lowered, lower);
      normalizer.add_character({reinterpret_cast<const char*>(lower), static_cast<size_t>(length)},
                               is_word_character(c));
    }
    text.remove_prefix(static_cast<size_t>(size));
  }
  return normalizer.finish();
}

AnswerScore score_answer(std::string_view output, const std::vector<std::string>& answers) {
  const std::string predicted = normalize_answer(output);
  AnswerScore best;
  for (const std::string& answer : answers) {
    const std::string right = normalize_answer(answer);
    const bool equal = predicted == right;
    best.exact_match |= equal;
    best.contains_match |= equal || (!right.empty() && predicted.find(right) != std::string::npos);
    best.f1 = std::max(best.f1, f1_of(predicted, right));
  }
  return best;
}

}  // namespace anyslot::cli

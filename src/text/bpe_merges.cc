#include "text/bpe_merges.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace anyslot {

namespace {

// Far more than any vocabulary has; cutting up pieces without end would take time and memory that
// grow as the square of a file's size.
constexpr size_t kMostPieceBytes = 512;
constexpr size_t kMostMerges = size_t{1} << 21;

bool begins_character(char byte) { return (static_cast<uint8_t>(byte) & 0xC0U) != 0x80U; }

class ScoredMerges {
 public:
  ScoredMerges(std::span<const int32_t> pieces, std::span<const double> scores,
               TokenizerDescription& out)
      : scores_(scores),
        out_(out),
        by_score_(pieces.begin(), pieces.end()),
        is_piece_(static_cast<size_t>(out.vocabulary.size())) {
    const auto score_of = [&](int32_t id) { return scores_[static_cast<size_t>(id)]; };
    std::ranges::stable_sort(by_score_, std::greater<>(), score_of);
    for (const int32_t id : by_score_) is_piece_[static_cast<size_t>(id)] = true;
  }

  /// Pieces of one score share a rank, so that the leftmost in the text comes first.
  Status add() {
    int32_t rank = 0;
    for (size_t i = 0; i < by_score_.size(); ++i) {
      if (i > 0 && score(i) != score(i - 1)) ++rank;
      if (Status status = add_cuts(by_score_[i], rank); !status.ok()) return status;
    }
    if (rank == 0 && joins_several()) {
      return failed_precondition(
          "are all the same, so that nothing says which pieces are joined first; convert the model "
          "anew from its tokenizer.model");
    }
    return {};
  }

 private:
  double score(size_t i) const { return scores_[static_cast<size_t>(by_score_[i])]; }

  std::optional<int32_t> piece(std::string_view name) const {
    const std::optional<int32_t> id = out_.vocabulary.id(name);
    return id && is_piece_[static_cast<size_t>(*id)] ? id : std::nullopt;
  }

  /// Every way to cut a piece in two.
  Status add_cuts(int32_t id, int32_t rank) {
    const std::string_view name = out_.vocabulary.find(id)->name;
    if (name.size() > kMostPieceBytes) {
      return failed_precondition("token " + std::to_string(id) + " has " +
                                 std::to_string(name.size()) + " bytes; pieces may have " +
                                 std::to_string(kMostPieceBytes));
    }
    for (size_t at = 1; at < name.size(); ++at) {
      if (!begins_character(name[at])) continue;
      const std::optional<int32_t> left = piece(name.substr(0, at));
      const std::optional<int32_t> right = left ? piece(name.substr(at)) : std::nullopt;
      if (right) out_.merges.push_back({*left, *right, id, rank});
    }
    if (out_.merges.size() > kMostMerges) {
      return failed_precondition("there are more than " + std::to_string(kMostMerges) +
                                 " ways to join pieces to others");
    }
    return {};
  }

  bool joins_several() const {
    return std::ranges::any_of(out_.merges, [&](const BpeMerge& merge) {
      return merge.result != out_.merges.front().result;
    });
  }

  std::span<const double> scores_;
  TokenizerDescription& out_;
  std::vector<int32_t> by_score_;  // the pieces, the highest score first
  std::vector<bool> is_piece_;     // by id
};

}  // namespace

std::optional<MergeNames> split_merge(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return MergeNames(text.substr(0, space), text.substr(space + 1));
}

Status add_merge(const MergeNames& names, TokenizerDescription& out) {
  const auto& [left, right] = names;
  std::string joined(left);
  joined.append(right);
  BpeMerge merge{.rank = static_cast<int32_t>(out.merges.size())};
  const std::pair<std::string_view, int32_t*> parts[] = {
      {left, &merge.left}, {right, &merge.right}, {joined, &merge.result}};
  for (const auto& [name, id] : parts) {
    const std::optional<int32_t> found = out.vocabulary.id(name);
    if (name.empty() || !found || !out.vocabulary.find(*found)->in_model) {
      return failed_precondition("'" + std::string(name) + "' is no token of the model");
    }
    *id = *found;
  }
  out.merges.push_back(merge);
  return {};
}

Status add_merges_of_scores(std::span<const int32_t> pieces, std::span<const double> scores,
                            TokenizerDescription& out) {
  return ScoredMerges(pieces, scores, out).add();
}

}  // namespace anyslot

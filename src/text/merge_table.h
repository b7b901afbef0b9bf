#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace anyslot {

/// A rule of byte-pair encoding: the token `left` followed by the token `right` becomes `result`.
/// The lowest rank wins, and of equal ones the leftmost in the text.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
  int32_t rank = 0;
};

/// A table from a pair of token ids to the merge that joins them.
class MergeTable {
 public:
  struct Entry {
    uint64_t pair = kNoPair;
    int32_t rank = 0;
    int32_t result = 0;
  };

  MergeTable() = default;
  /// Of equal pairs the last one counts, as in Hugging Face's reader.
  explicit MergeTable(const std::vector<BpeMerge>& merges);

  /// Null when no rule joins the two.
  const Entry* find(int32_t left, int32_t right) const {
    const uint64_t pair = pair_of(left, right);
    for (size_t i = slot_of(pair);; i = (i + 1) & mask_) {
      if (entries_[i].pair == pair) return &entries_[i];
      if (entries_[i].pair == kNoPair) return nullptr;
    }
  }

 private:
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static uint64_t pair_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15U >> 32) & mask_; }

  std::vector<Entry> entries_ = std::vector<Entry>(1);  // a power of two, at most half full
  size_t mask_ = 0;
};

}  // namespace anyslot

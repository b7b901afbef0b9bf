#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "anyslot/status.h"
#include "text/vocabulary.h"

namespace anyslot {

/// A rule of byte-pair encoding: the token `left` followed by the token `right` becomes `result`.
/// Earlier rules of a list win.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
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
  /// The rank of a merge is its index; of equal pairs the last one counts, as in Hugging Face's
  /// reader.
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

/// Byte-pair encoding over bytes (Sennrich et al. 2016; byte-level as in GPT-2). Thread-safe.
class Bpe {
 public:
  struct Options {
    std::array<int32_t, 256>
        byte_ids{};  // the token of each byte; -1: none, for bytes that UTF-8 never has
    std::vector<BpeMerge> merges;
    bool ignore_merges = false;      // a word that is a token as a whole stays whole
    StringMap<int32_t> whole_words;  // bytes -> id, read when ignore_merges is set
  };

  /// Working memory of encode_word, to be kept between words.
  struct Scratch {
    struct Node {
      int32_t id;
      int32_t previous;  // -1: none
      int32_t next;      // -1: none
    };
    struct Candidate {
      int32_t rank;
      int32_t left;  // index of the left node
      int32_t right_id;
      int32_t left_id;
      int32_t result;
    };
    std::vector<Node> nodes;
    std::vector<Candidate> heap;
    std::vector<int32_t> ids;
    std::vector<const MergeTable::Entry*> joins;
  };

  Bpe() = default;
  explicit Bpe(Options options);

  /// Appends the ids of `word`. Time grows as n log n.
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  void merge_short(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;
  void merge_long(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_{};
  MergeTable merges_;
  bool ignore_merges_ = false;
  StringMap<int32_t> whole_words_;
};

}  // namespace anyslot

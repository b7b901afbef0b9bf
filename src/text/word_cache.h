#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace anyslot {

/// Remembers the token ids of the words of one text: most words of a text come again. It lives as
/// long as one call, so that its time tells nobody what others sent.
class WordCache {
 public:
  /// Longer words are not remembered, in bytes.
  static constexpr size_t kMaxWord = 64;

  /// `text_size`: bytes of the text, which says how many words may come.
  explicit WordCache(size_t text_size);

  /// The ids of a word; empty when it is not known. Valid until the next call of put().
  std::span<const int32_t> find(std::string_view word);
  /// Remembers the ids of the word that find() was asked for last.
  void put(std::string_view word, std::span<const int32_t> ids);

 private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t word_begin = 0;
    uint32_t ids_begin = 0;
    uint16_t word_size = 0;
    uint16_t num_ids = 0;  // 0: free
  };

  std::vector<Entry> entries_;  // a power of two; a word has one place, which the newest gets
  std::string words_;
  std::vector<int32_t> ids_;
  uint64_t last_hash_ = 0;
};

}  // namespace anyslot

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/character_table.h"
#include "text/merge_table.h"
#include "text/vocabulary.h"
#include "text/word_cache.h"

namespace anyslot {

/// Byte-pair encoding (Sennrich et al. 2016) over bytes, as in GPT-2, or over characters with the
/// tokens of single bytes for those that are unknown, as in SentencePiece. Thread-safe.
class Bpe {
 public:
  struct Options {
    bool by_character = false;
    // The token of each byte; -1: none. Over characters: of the bytes of an unknown one.
    std::array<int32_t, 256> byte_ids{};
    CharacterTable characters;          // over characters: the token of each
    std::optional<int32_t> unknown_id;  // for a character that is not even bytes; none: left out
    bool fuse_unknown = false;          // one for a run of them
    std::vector<BpeMerge> merges;
    bool ignore_merges = false;      // a word that is a token as a whole stays whole
    StringMap<int32_t> whole_words;  // word -> id, read when ignore_merges is set
    // Over characters: cut a word before a metaspace (U+2581) where no merge can reach across, that
    // is behind any character but these. Not set: nowhere.
    std::optional<std::vector<char32_t>> joined_to_metaspace;
  };

  /// Working memory of encode_word, to be kept between words.
  struct Scratch {
    /// `text_size`: bytes of the text to come.
    explicit Scratch(size_t text_size) : cache(text_size) {}

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
    WordCache cache;
  };

  Bpe() = default;
  explicit Bpe(Options options);

  /// Appends the ids of `word` (valid UTF-8). Time grows as n log n.
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  void encode_part(std::string_view part, Scratch& scratch, std::vector<int32_t>& ids) const;
  size_t next_cut(std::string_view word, size_t from) const;
  void find_symbols(std::string_view part, std::vector<int32_t>& symbols) const;
  void find_character_symbols(std::string_view part, std::vector<int32_t>& symbols) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  Options options_;  // without the merges
  MergeTable merges_;
};

}  // namespace anyslot

#include "text/bpe.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace anyslot {

namespace {

constexpr std::string_view kMetaspaceBytes = "\xE2\x96\x81";

// Up to here searching the whole word for the next merge is faster than keeping a heap.
constexpr size_t kShortWord = 48;

// Puts the best candidate, the lowest rank and then the leftmost, on top of a std heap.
struct WorseCandidate {
  bool operator()(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

}  // namespace

Bpe::Bpe(Options options) : options_(std::move(options)), merges_(options_.merges) {
  options_.merges = {};
}

void Bpe::encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (!options_.joined_to_metaspace || options_.ignore_merges) {
    return encode_part(word, scratch, ids);
  }
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = next_cut(word, begin + 1);
    encode_part(word.substr(begin, end - begin), scratch, ids);
    begin = end;
  }
}

/// The first place at or behind `from` where the word may be cut before a metaspace.
size_t Bpe::next_cut(std::string_view word, size_t from) const {
  for (size_t at = word.find(kMetaspaceBytes, from); at != std::string_view::npos;
       at = word.find(kMetaspaceBytes, at + 1)) {
    const char32_t before = last_code_point(word.substr(0, at));
    if (!std::ranges::binary_search(*options_.joined_to_metaspace, before)) return at;
  }
  return word.size();
}

void Bpe::encode_part(std::string_view part, Scratch& scratch, std::vector<int32_t>& ids) const {
  const bool may_be_known = part.size() <= WordCache::kMaxWord;
  if (may_be_known) {
    const std::span<const int32_t> known = scratch.cache.find(part);
    if (!known.empty()) {
      ids.insert(ids.end(), known.begin(), known.end());
      return;
    }
  }
  scratch.ids.clear();
  const auto whole =
      options_.ignore_merges ? options_.whole_words.find(part) : options_.whole_words.end();
  if (whole != options_.whole_words.end()) {
    scratch.ids.push_back(whole->second);
  } else {
    find_symbols(part, scratch.ids);
    if (scratch.ids.size() <= kShortWord) {
      merge_short(scratch);
    } else {
      merge_long(scratch);
    }
  }
  if (may_be_known) scratch.cache.put(part, scratch.ids);
  ids.insert(ids.end(), scratch.ids.begin(), scratch.ids.end());
}

void Bpe::find_symbols(std::string_view part, std::vector<int32_t>& symbols) const {
  if (options_.by_character) return find_character_symbols(part, symbols);
  for (const char byte : part) symbols.push_back(options_.byte_ids[static_cast<uint8_t>(byte)]);
}

void Bpe::find_character_symbols(std::string_view part, std::vector<int32_t>& symbols) const {
  bool unknown = false;  // one is still to be written
  const auto write_unknown = [&] {
    if (std::exchange(unknown, false)) symbols.push_back(*options_.unknown_id);
  };
  const auto has_id = [&](char byte) { return options_.byte_ids[static_cast<uint8_t>(byte)] >= 0; };
  while (!part.empty()) {
    const std::string_view character = part.substr(0, next_utf8_unit(part).size);
    const int32_t id = options_.characters.find(first_code_point(part));
    part.remove_prefix(character.size());
    if (id != CharacterTable::kNone) {
      write_unknown();
      symbols.push_back(id);
    } else if (std::ranges::all_of(character, has_id)) {
      for (const char byte : character) {
        symbols.push_back(options_.byte_ids[static_cast<uint8_t>(byte)]);
      }
    } else if (options_.unknown_id) {
      if (!options_.fuse_unknown) write_unknown();
      unknown = true;
    }
  }
  write_unknown();
}

void Bpe::merge_short(Scratch& scratch) const {
  std::vector<int32_t>& symbols = scratch.ids;
  std::vector<const MergeTable::Entry*>& joins = scratch.joins;  // joins[i]: of symbols i and i + 1
  joins.clear();
  for (size_t i = 1; i < symbols.size(); ++i) {
    joins.push_back(merges_.find(symbols[i - 1], symbols[i]));
  }
  while (true) {
    const MergeTable::Entry* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < joins.size(); ++i) {
      if (joins[i] != nullptr && (best == nullptr || joins[i]->rank < best->rank)) {
        best = joins[i];
        at = i;
      }
    }
    if (best == nullptr) break;
    symbols[at] = best->result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    joins.erase(joins.begin() + static_cast<std::ptrdiff_t>(at));
    if (at > 0) joins[at - 1] = merges_.find(symbols[at - 1], symbols[at]);
    if (at < joins.size()) joins[at] = merges_.find(symbols[at], symbols[at + 1]);
  }
}

void Bpe::merge_long(Scratch& scratch) const {
  constexpr int32_t kDead = -1;  // the id of a node that was joined to its left neighbour
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  const auto size = static_cast<int32_t>(scratch.ids.size());
  nodes.clear();
  heap.clear();
  const auto candidate = [&](int32_t left) {
    const Scratch::Node& node = nodes[left];
    if (node.next < 0) return false;
    const int32_t right_id = nodes[node.next].id;
    const MergeTable::Entry* join = merges_.find(node.id, right_id);
    if (join != nullptr) heap.push_back({join->rank, left, right_id, node.id, join->result});
    return join != nullptr;
  };
  const auto push = [&](int32_t left) {
    if (candidate(left)) std::push_heap(heap.begin(), heap.end(), WorseCandidate{});
  };

  for (int32_t i = 0; i < size; ++i) {
    nodes.push_back({scratch.ids[i], i - 1, i + 1 < size ? i + 1 : -1});
  }
  for (int32_t i = 0; i < size; ++i) candidate(i);
  std::make_heap(heap.begin(), heap.end(), WorseCandidate{});

  while (!heap.empty()) {
    const Scratch::Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), WorseCandidate{});
    heap.pop_back();
    Scratch::Node& left = nodes[best.left];
    // A candidate is stale when either of its symbols was joined to another in the meantime.
    if (left.id != best.left_id || left.next < 0 || nodes[left.next].id != best.right_id) continue;
    Scratch::Node& right = nodes[left.next];
    left.id = best.result;
    left.next = right.next;
    right.id = kDead;
    if (left.next >= 0) nodes[left.next].previous = best.left;
    if (left.previous >= 0) push(left.previous);
    push(best.left);
  }
  scratch.ids.clear();
  for (int32_t i = 0; i >= 0; i = nodes[i].next) scratch.ids.push_back(nodes[i].id);
}

}  // namespace anyslot

#include "text/bpe.h"

#include <algorithm>
#include <bit>

namespace anyslot {

namespace {

// Up to here searching the whole word for the next merge is faster than keeping a heap.
constexpr size_t kShortWord = 48;

// Puts the best candidate, the lowest rank and then the leftmost, on top of a std heap.
struct WorseCandidate {
  bool operator()(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

}  // namespace

MergeTable::MergeTable(const std::vector<BpeMerge>& merges)
    : entries_(std::bit_ceil(2 * merges.size() + 1)), mask_(entries_.size() - 1) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const BpeMerge& merge = merges[rank];
    const uint64_t pair = pair_of(merge.left, merge.right);
    size_t i = slot_of(pair);
    while (entries_[i].pair != kNoPair && entries_[i].pair != pair) i = (i + 1) & mask_;
    entries_[i] = {pair, static_cast<int32_t>(rank), merge.result};
  }
}

Bpe::Bpe(Options options)
    : byte_ids_(options.byte_ids),
      merges_(options.merges),
      ignore_merges_(options.ignore_merges),
      whole_words_(std::move(options.whole_words)) {}

void Bpe::encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  if (word.size() <= kShortWord) {
    merge_short(word, scratch, ids);
  } else {
    merge_long(word, scratch, ids);
  }
}

void Bpe::merge_short(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  std::vector<int32_t>& symbols = scratch.ids;
  std::vector<const MergeTable::Entry*>& joins = scratch.joins;  // joins[i]: of symbols i and i + 1
  symbols.clear();
  joins.clear();
  for (const char byte : word) {
    symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    if (symbols.size() > 1)
      joins.push_back(merges_.find(symbols[symbols.size() - 2], symbols.back()));
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
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::merge_long(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  constexpr int32_t kDead = -1;  // the id of a node that was joined to its left neighbour
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  const auto size = static_cast<int32_t>(word.size());
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
    nodes.push_back({byte_ids_[static_cast<uint8_t>(word[i])], i - 1, i + 1 < size ? i + 1 : -1});
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
  for (int32_t i = 0; i >= 0; i = nodes[i].next) ids.push_back(nodes[i].id);
}

}  // namespace anyslot

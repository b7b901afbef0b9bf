#include "text/merge_table.h"

#include <bit>

namespace anyslot {

MergeTable::MergeTable(const std::vector<BpeMerge>& merges)
    : entries_(std::bit_ceil(2 * merges.size() + 1)), mask_(entries_.size() - 1) {
  for (const BpeMerge& merge : merges) {
    const uint64_t pair = pair_of(merge.left, merge.right);
    size_t i = slot_of(pair);
    while (entries_[i].pair != kNoPair && entries_[i].pair != pair) i = (i + 1) & mask_;
    entries_[i] = {pair, merge.rank, merge.result};
  }
}

}  // namespace anyslot

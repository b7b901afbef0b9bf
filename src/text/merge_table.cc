#include "text/merge_table.h"

#include <bit>

namespace anyslot {

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

}  // namespace anyslot

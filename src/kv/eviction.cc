#include "kv/eviction.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace anyslot {

EvictionPolicy::EvictionPolicy(int64_t pool_blocks) : pool_blocks_(pool_blocks) {
  for (Queue& queue : levels_) queue.end.previous_ = queue.end.next_ = &queue.end;
}

/// Applies the halvings that passed since the handle was last touched. Halving uses and going down
/// one level agree, since a level is the logarithm of the uses.
void EvictionPolicy::settle(EvictionHandle& handle) const {
  const int64_t halvings = std::min<int64_t>(age_ - handle.age_, kLevels);
  handle.uses_ = std::max(1, handle.uses_ >> halvings);
  handle.level_ = std::max(0, handle.level_ - static_cast<int>(halvings));
  handle.age_ = age_;
}

void EvictionPolicy::count_use(EvictionHandle& handle) {
  settle(handle);
  handle.uses_ = std::min(handle.uses_ + 1, kMaxUses);
}

void EvictionPolicy::insert(EvictionHandle& handle, CacheEntry* entry, int64_t num_blocks,
                            int64_t expiry) {
  if (contains(handle)) throw std::logic_error("an evictable entry became evictable");
  index_expiry(handle, expiry);
  settle(handle);
  handle.entry_ = entry;
  handle.num_blocks_ = num_blocks;
  push_front(handle, std::bit_width(static_cast<unsigned>(handle.uses_)) - 1);
  shrink_protected();
}

void EvictionPolicy::remove(EvictionHandle& handle) {
  if (!contains(handle)) throw std::logic_error("an entry that is not evictable left the queue");
  unlink(handle);
  unindex_expiry(handle);
}

void EvictionPolicy::reserve_expiry(EvictionHandle& handle) {
  if (handle.expiry_ != 0 || !handle.expiry_node_.empty()) return;
  ExpirySet one{{0, 0, &handle}};
  handle.expiry_node_ = one.extract(one.begin());
}

void EvictionPolicy::set_expiry(EvictionHandle& handle, int64_t expiry) {
  if (!contains(handle)) throw std::logic_error("the policy does not hold this entry's expiry");
  if (expiry != 0) reserve_expiry(handle);
  unindex_expiry(handle);
  index_expiry(handle, expiry);
}

CacheEntry* EvictionPolicy::evict() {
  EvictionHandle* const victim = next_victim();
  if (victim == nullptr) return nullptr;
  remove(*victim);
  blocks_evicted_ += victim->num_blocks_;
  if (blocks_evicted_ >= kAgingTurnovers * pool_blocks_) grow_old();
  return victim->entry_;
}

bool EvictionPolicy::has_expired() const {
  return !by_expiry_.empty() && std::get<0>(*by_expiry_.begin()) < tick_;
}

EvictionHandle* EvictionPolicy::next_victim() {
  if (has_expired()) return std::get<EvictionHandle*>(*by_expiry_.begin());
  for (Queue& queue : levels_) {
    if (queue.end.previous_ != &queue.end) return queue.end.previous_;
  }
  return nullptr;
}

void EvictionPolicy::shrink_protected() {
  const int64_t limit = pool_blocks_ * kProtectedPercent / 100;
  int level = 1;
  while (protected_blocks_ > limit) {
    EvictionHandle* const tail = levels_[level].end.previous_;
    if (tail == &levels_[level].end) {
      ++level;
      continue;
    }
    unlink(*tail);
    push_front(*tail, 0);
  }
}

/// Each level joins the one below in front of it: its entries were used more, so they go later.
void EvictionPolicy::grow_old() {
  blocks_evicted_ = 0;
  ++age_;
  protected_blocks_ -= levels_[1].num_blocks;
  for (int level = 1; level < kLevels; ++level) {
    Queue& from = levels_[level];
    Queue& to = levels_[level - 1];
    if (from.end.next_ == &from.end) continue;
    EvictionHandle* const head = from.end.next_;
    EvictionHandle* const tail = from.end.previous_;
    tail->next_ = to.end.next_;
    tail->next_->previous_ = tail;
    head->previous_ = &to.end;
    to.end.next_ = head;
    to.num_blocks += from.num_blocks;
    from.end.previous_ = from.end.next_ = &from.end;
    from.num_blocks = 0;
  }
}

void EvictionPolicy::push_front(EvictionHandle& handle, int level) {
  Queue& queue = levels_[level];
  handle.level_ = level;
  handle.previous_ = &queue.end;
  handle.next_ = queue.end.next_;
  handle.next_->previous_ = &handle;
  queue.end.next_ = &handle;
  queue.num_blocks += handle.num_blocks_;
  if (level > 0) protected_blocks_ += handle.num_blocks_;
}

void EvictionPolicy::unlink(EvictionHandle& handle) {
  settle(handle);
  handle.previous_->next_ = handle.next_;
  handle.next_->previous_ = handle.previous_;
  handle.previous_ = handle.next_ = nullptr;
  levels_[handle.level_].num_blocks -= handle.num_blocks_;
  if (handle.level_ > 0) protected_blocks_ -= handle.num_blocks_;
}

void EvictionPolicy::index_expiry(EvictionHandle& handle, int64_t expiry) {
  if (expiry != 0) {
    reserve_expiry(handle);
    handle.expiry_node_.value() = {expiry, next_order_, &handle};
    by_expiry_.insert(std::move(handle.expiry_node_));
  }
  handle.expiry_ = expiry;
  handle.order_ = next_order_++;
}

void EvictionPolicy::unindex_expiry(EvictionHandle& handle) {
  if (handle.expiry_ == 0) return;
  handle.expiry_node_ = by_expiry_.extract({handle.expiry_, handle.order_, &handle});
  handle.expiry_ = 0;
}

Status EvictionPolicy::check_integrity() const {
  const auto broken = [](int level, const std::string& what) {
    return internal_error("eviction level " + std::to_string(level) + ": " + what);
  };
  int64_t protected_blocks = 0;
  size_t num_expiring = 0;
  for (int level = 0; level < kLevels; ++level) {
    const Queue& queue = levels_[level];
    int64_t num_blocks = 0;
    for (const EvictionHandle* at = &queue.end;;) {
      const EvictionHandle* const next = at->next_;
      if (next == nullptr || next->previous_ != at) return broken(level, "its links do not match");
      if (next == &queue.end) break;
      at = next;
      num_blocks += at->num_blocks_;
      if (std::max<int64_t>(0, at->level_ - (age_ - at->age_)) != level) {
        return broken(level, "an entry of level " + std::to_string(at->level_) + " stands in it");
      }
      if (at->expiry_ != 0) ++num_expiring;
    }
    if (num_blocks != queue.num_blocks) {
      return broken(level, std::to_string(queue.num_blocks) + " blocks counted, " +
                               std::to_string(num_blocks) + " found");
    }
    if (level > 0) protected_blocks += num_blocks;
  }
  if (protected_blocks != protected_blocks_) {
    return internal_error("protected blocks: " + std::to_string(protected_blocks_) + " counted, " +
                          std::to_string(protected_blocks) + " found");
  }
  if (protected_blocks_ > pool_blocks_ * kProtectedPercent / 100) {
    return internal_error("protected blocks: " + std::to_string(protected_blocks_) + " of " +
                          std::to_string(pool_blocks_) + " are more than " +
                          std::to_string(kProtectedPercent) + "%");
  }
  for (const auto& [expiry, order, handle] : by_expiry_) {
    if (!contains(*handle) || handle->expiry_ != expiry || handle->order_ != order) {
      return internal_error("expiries: an entry is indexed under one that it does not have");
    }
  }
  if (num_expiring != by_expiry_.size()) {
    return internal_error("expiries: " + std::to_string(by_expiry_.size()) + " indexed, " +
                          std::to_string(num_expiring) + " found");
  }
  return {};
}

}  // namespace anyslot

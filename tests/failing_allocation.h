#pragma once

#include <cstdint>

namespace anyslot::testing_support {

/// Has the one operator new of this thread fail that comes after `after` others.
void fail_allocation(int64_t after);

/// Has one operator new of this thread fail while it lives: the one after `after` others. One at a
/// time. The program must contain failing_allocation.cc.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t after);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  /// Whether it was that many.
  bool has_failed() const;
};

}  // namespace anyslot::testing_support

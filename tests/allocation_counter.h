#pragma once

#include <cstdint>

namespace anyslot::testing_support {

/// Counts the calls that take memory from the C library (malloc and its kin, operator new), by any
/// thread, while it lives. One at a time. The program must contain allocation_counter.cc.
class AllocationCounter {
 public:
  /// Calls by the shared library whose path contains `library` are counted apart.
  explicit AllocationCounter(const char* library);
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  int64_t count() const;
  int64_t library_count() const;
};

}  // namespace anyslot::testing_support

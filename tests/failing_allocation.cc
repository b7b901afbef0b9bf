#include "failing_allocation.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constexpr int64_t kNone = -1;
thread_local int64_t left = kNone;  // allocations before the one that fails
thread_local bool failed = false;

bool is_the_one() {
  if (left == kNone) return false;
  failed = left-- == 0;  // which leaves kNone
  return failed;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = is_the_one() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace anyslot::testing_support {

void fail_allocation(int64_t after) {
  failed = false;
  left = after;
}

FailingAllocation::FailingAllocation(int64_t after) { fail_allocation(after); }

FailingAllocation::~FailingAllocation() { left = kNone; }

bool FailingAllocation::has_failed() const { return failed; }

}  // namespace anyslot::testing_support

#include "allocation_counter.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

// The C library calls these for its own needs as well, and lets a program replace the public names.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0};
std::atomic<int64_t> library_calls{0};
uintptr_t library_begin = 0;
uintptr_t library_end = 0;

/// Finds where the library's code is mapped.
int find_library(dl_phdr_info* object, size_t /*bytes*/, void* name) {
  if (std::strstr(object->dlpi_name, static_cast<const char*>(name)) == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    library_begin = object->dlpi_addr + segment.p_vaddr;
    library_end = library_begin + segment.p_memsz;
  }
  return 1;
}

void count_call(void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const auto address = reinterpret_cast<uintptr_t>(caller);
  const bool by_library = library_begin <= address && address < library_end;
  (by_library ? library_calls : calls).fetch_add(1, std::memory_order_relaxed);
}

void* checked(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define COUNT_CALL() count_call(__builtin_return_address(0))

extern "C" {

void* malloc(size_t bytes) {
  COUNT_CALL();
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  COUNT_CALL();
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
  COUNT_CALL();
  return __libc_realloc(memory, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  COUNT_CALL();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  COUNT_CALL();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  COUNT_CALL();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

// Replaced too, because the caller of malloc would be the C++ library, whoever asked.

void* operator new(size_t bytes) {
  COUNT_CALL();
  return checked(__libc_malloc(bytes));
}
void* operator new[](size_t bytes) {
  COUNT_CALL();
  return checked(__libc_malloc(bytes));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  COUNT_CALL();
  return checked(__libc_memalign(static_cast<size_t>(alignment), bytes));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  COUNT_CALL();
  return checked(__libc_memalign(static_cast<size_t>(alignment), bytes));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace anyslot::testing_support {

AllocationCounter::AllocationCounter(const char* library) {
  library_begin = library_end = 0;
  ::dl_iterate_phdr(find_library, const_cast<char*>(library));
  calls = 0;
  library_calls = 0;
  counting = true;
}

AllocationCounter::~AllocationCounter() { counting = false; }

int64_t AllocationCounter::count() const { return calls.load(); }
int64_t AllocationCounter::library_count() const { return library_calls.load(); }

}  // namespace anyslot::testing_support

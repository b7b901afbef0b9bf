#include "backend/cpu/host_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <utility>

namespace anyslot::cpu {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

HostMemory::HostMemory(HostMemory&& other) noexcept { *this = std::move(other); }

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

Expected<HostMemory> HostMemory::allocate(size_t bytes, const char* purpose) {
  HostMemory memory;
  if (bytes == 0) return memory;
  // Large mappings start at a huge page's boundary; the kernel gives them page-aligned only.
  const size_t slack = bytes >= kHugePage ? kHugePage : 0;
  const size_t mapping_bytes = bytes + slack;
  void* mapping = MAP_FAILED;
  if (mapping_bytes >= bytes) {
    mapping =
        mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (mapping == MAP_FAILED) {
    return resource_exhausted("no memory for " + std::string(purpose) + ": " +
                              std::to_string(bytes) + " bytes were asked for");
  }
  memory.mapping_ = mapping;
  memory.mapping_bytes_ = mapping_bytes;
  memory.bytes_ = bytes;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  const size_t offset = slack == 0 ? 0 : (kHugePage - address % kHugePage) % kHugePage;
  memory.data_ = static_cast<std::byte*>(mapping) + offset;
  if (slack > 0) madvise(memory.data_, bytes, MADV_HUGEPAGE);  // a hint: failing costs speed only
  return memory;
}

}  // namespace anyslot::cpu

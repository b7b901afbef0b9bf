#include <cstring>
#include <string>

#include "backend/ops.h"

namespace anyslot {

namespace {

Status check_size(size_t bytes, size_t size) {
  if (bytes <= size) return {};
  return invalid_argument("a buffer of " + std::to_string(size) + " bytes cannot transfer " +
                          std::to_string(bytes));
}

}  // namespace

Status DeviceBuffer::write(std::span<const std::byte> bytes) {
  if (Status status = check_size(bytes.size(), size_bytes()); !status) return status;
  if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
  return {};
}

Status DeviceBuffer::read(std::span<std::byte> bytes) {
  if (Status status = check_size(bytes.size(), size_bytes()); !status) return status;
  if (!bytes.empty()) std::memcpy(bytes.data(), data(), bytes.size());
  return {};
}

}  // namespace anyslot

#pragma once

#include <cstdint>

namespace anyslot {

/// Bytes that this process may still take without swapping: the system's available memory, or what
/// its control group (version 2) leaves, if that is less.
int64_t available_memory_bytes();

}  // namespace anyslot

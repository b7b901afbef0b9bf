#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "anyslot/status.h"

namespace anyslot::cli {

/// Bytes of a size written as "512MiB" or "4GiB": a decimal number and B, KiB, MiB, GiB or TiB. A
/// number alone is bytes. Fails with kInvalidArgument for anything else, negative or beyond int64.
Expected<int64_t> parse_size(std::string_view text);

/// The shortest exact or one-decimal form: "512 MiB", "1.5 GiB", "17 B".
std::string format_size(int64_t bytes);

/// "1,234,567".
std::string count_text(int64_t number);
/// "1 document", "20 documents".
std::string plural_text(int64_t number, std::string_view one);

}  // namespace anyslot::cli

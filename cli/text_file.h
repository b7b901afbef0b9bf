#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "anyslot/status.h"

namespace anyslot::cli {

/// All bytes of a file; "-" is standard input. Fails with kInvalidArgument, naming the file, when
/// it cannot be read.
Expected<std::string> read_file(const std::string& path);

/// The offset of the first byte that is not UTF-8 (overlong forms and surrogates are not); none if
/// all is.
std::optional<size_t> find_invalid_utf8(std::string_view text);

/// "standard input" for "-", else the path.
std::string input_name(const std::string& path);

}  // namespace anyslot::cli

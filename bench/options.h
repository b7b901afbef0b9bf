#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"

namespace anyslot::bench {

/// "64,512,2048": whole numbers of at least `minimum`, at most 2^31 - 1. Fails with
/// kInvalidArgument.
Expected<std::vector<int64_t>> parse_numbers(std::string_view text, int64_t minimum);

/// The parts of "a,b"; empty ones are kept.
std::vector<std::string> split_list(std::string_view text);

/// Adds an option that takes a list as parse_numbers does and stores it in `values`, whose content
/// is the default.
CLI::Option* add_numbers_option(CLI::App& command, const std::string& name,
                                std::vector<int64_t>& values, int64_t minimum,
                                const std::string& help);

}  // namespace anyslot::bench

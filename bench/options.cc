#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <utility>

namespace anyslot::bench {

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Expected<std::vector<int64_t>> parse_numbers(std::string_view text, int64_t minimum) {
  constexpr int64_t kMaximum = std::numeric_limits<int32_t>::max();
  std::vector<int64_t> numbers;
  for (const std::string& part : split_list(text)) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number < minimum ||
        number > kMaximum) {
      return invalid_argument(fmt::format(
          "\"{}\" is not a list of whole numbers from {} to {} with commas between them", text,
          minimum, kMaximum));
    }
    numbers.push_back(number);
  }
  return numbers;
}

CLI::Option* add_numbers_option(CLI::App& command, const std::string& name,
                                std::vector<int64_t>& values, int64_t minimum,
                                const std::string& help) {
  return command
      .add_option_function<std::string>(
          name,
          [name, minimum, &values](const std::string& text) {
            Expected<std::vector<int64_t>> numbers = parse_numbers(text, minimum);
            if (!numbers) throw CLI::ValidationError(name, numbers.status().message());
            values = std::move(*numbers);
          },
          fmt::format("{} (default: {})", help, fmt::join(values, ",")))
      ->type_name("N,...");
}

}  // namespace anyslot::bench

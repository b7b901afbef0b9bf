#include "sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace anyslot::cli {
namespace {

struct Unit {
  std::string_view name;
  int64_t bytes;
};

constexpr Unit kUnits[] = {{"TiB", int64_t{1} << 40},
                           {"GiB", int64_t{1} << 30},
                           {"MiB", int64_t{1} << 20},
                           {"KiB", int64_t{1} << 10},
                           {"B", 1}};

Status bad_size(std::string_view text) {
  return invalid_argument(fmt::format(
      "\"{}\" is not a size; write it as 512MiB or 4GiB (units B, KiB, MiB, GiB, TiB)", text));
}

}  // namespace

Expected<int64_t> parse_size(std::string_view text) {
  std::string_view number = text;
  int64_t unit = 1;
  for (const Unit& candidate : kUnits) {
    if (number.ends_with(candidate.name)) {
      number.remove_suffix(candidate.name.size());
      unit = candidate.bytes;
      break;
    }
  }
  while (number.ends_with(' ')) number.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value,
                                            std::chars_format::fixed);
  if (number.empty() || error != std::errc() || end != number.data() + number.size()) {
    return bad_size(text);
  }
  const double bytes = value * static_cast<double>(unit);
  if (!(bytes >= 0) || bytes >= 9.2e18 || bytes != std::floor(bytes)) return bad_size(text);
  return static_cast<int64_t>(bytes);
}

std::string format_size(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes < unit.bytes) continue;
    if (bytes % unit.bytes == 0) return fmt::format("{} {}", bytes / unit.bytes, unit.name);
    return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(unit.bytes),
                       unit.name);
  }
  return fmt::format("{} B", bytes);
}

std::string count_text(int64_t number) {
  std::string text = fmt::format("{}", number);
  const size_t first_digit = number < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string plural_text(int64_t number, std::string_view one) {
  return fmt::format("{} {}{}", count_text(number), one, number == 1 ? "" : "s");
}

}  // namespace anyslot::cli

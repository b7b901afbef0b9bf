#include "model/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "model/json_file.h"

namespace anyslot {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxRank = 16;

/// A non-negative integer that fits int64.
std::optional<int64_t> read_count(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const auto value = json.get<uint64_t>();
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> checked_product(std::span<const int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

Status read_shape(const std::string& tensor, const Json& json, std::vector<int64_t>& shape) {
  if (!json.is_array() || json.size() > kMaxRank) {
    return failed_precondition(tensor + ": shape is not a list of at most " +
                               std::to_string(kMaxRank) + " numbers");
  }
  for (const Json& dimension : json) {
    const std::optional<int64_t> count = read_count(dimension);
    if (!count) {
      return failed_precondition(tensor + ": a dimension of its shape is not a whole number >= 0");
    }
    shape.push_back(*count);
  }
  return {};
}

/// Sets begin and end, still relative to the data.
Status read_offsets(const std::string& tensor, const Json& json, size_t data_bytes,
                    TensorEntry& entry) {
  std::optional<int64_t> begin;
  std::optional<int64_t> end;
  if (json.is_array() && json.size() == 2) {
    begin = read_count(json[0]);
    end = read_count(json[1]);
  }
  if (!begin || !end) {
    return failed_precondition(tensor + ": data_offsets are not two whole numbers >= 0");
  }
  const std::string offsets =
      "data_offsets [" + std::to_string(*begin) + ", " + std::to_string(*end) + "]";
  if (*begin > *end) return failed_precondition(tensor + ": " + offsets + " end before they begin");
  if (static_cast<uint64_t>(*end) > data_bytes) {
    return failed_precondition(tensor + ": " + offsets + " reach past the file's " +
                               std::to_string(data_bytes) +
                               " bytes of data; the file is truncated or damaged");
  }
  entry.begin = static_cast<size_t>(*begin);
  entry.end = static_cast<size_t>(*end);
  return {};
}

Status check_size(const std::string& tensor, const TensorEntry& entry) {
  const std::optional<int64_t> elements = checked_product(entry.shape);
  if (!elements) {
    return failed_precondition(tensor + ": shape " + shape_text(entry.shape) + " overflows");
  }
  const std::optional<size_t> element_bytes = safetensors_dtype_size(entry.dtype);
  if (!element_bytes) return {};  // no known size to check; refused when somebody asks for it
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(*elements), *element_bytes, &bytes) ||
      bytes != entry.end - entry.begin) {
    return failed_precondition(tensor + ": shape " + shape_text(entry.shape) + " of " +
                               entry.dtype + " does not fill its " +
                               std::to_string(entry.end - entry.begin) + " bytes");
  }
  return {};
}

Status read_entry(const std::string& tensor, const Json& json, size_t data_bytes,
                  TensorEntry& entry) {
  if (!json.is_object()) return failed_precondition(tensor + ": its entry is not a JSON object");
  const auto dtype = json.find("dtype");
  const auto shape = json.find("shape");
  const auto offsets = json.find("data_offsets");
  if (dtype == json.end() || shape == json.end() || offsets == json.end()) {
    return failed_precondition(tensor + ": its entry lacks dtype, shape or data_offsets");
  }
  if (!dtype->is_string()) return failed_precondition(tensor + ": dtype is not a string");
  entry.dtype = dtype->get<std::string>();
  if (Status status = read_shape(tensor, *shape, entry.shape); !status) return status;
  if (Status status = read_offsets(tensor, *offsets, data_bytes, entry); !status) return status;
  return check_size(tensor, entry);
}

/// The tensors must tile the data. `entries` are sorted by offset.
Status check_tiling(const std::string& file_name, std::span<const TensorEntry> entries,
                    size_t data_bytes) {
  size_t filled = 0;
  for (const TensorEntry& entry : entries) {
    const std::string tensor = file_name + ": tensor " + quote_name(entry.name);
    if (entry.begin < filled) {
      return failed_precondition(tensor + ": its data overlap those of another tensor");
    }
    if (entry.begin > filled) {
      return failed_precondition(tensor + ": bytes " + std::to_string(filled) + " to " +
                                 std::to_string(entry.begin) +
                                 " of the data before it belong to no tensor");
    }
    filled = entry.end;
  }
  if (filled != data_bytes) {
    return failed_precondition(file_name + ": " + std::to_string(data_bytes - filled) +
                               " bytes at its end belong to no tensor");
  }
  return {};
}

/// The JSON's bytes, once the length before them has been checked against the file.
Expected<std::span<const std::byte>> header_bytes(const std::string& file_name,
                                                  std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return failed_precondition(file_name + ": " + std::to_string(file.size()) +
                               " bytes are too few for a safetensors file; it is truncated");
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeaderBytes) {
    return failed_precondition(file_name + ": a header of " + std::to_string(length) +
                               " bytes is more than the " + std::to_string(kMaxHeaderBytes) +
                               " that the format allows; this is no safetensors file");
  }
  if (length > file.size() - kLengthBytes) {
    return failed_precondition(file_name + ": a header of " + std::to_string(length) +
                               " bytes does not fit a file of " + std::to_string(file.size()) +
                               "; it is truncated");
  }
  return file.subspan(kLengthBytes, static_cast<size_t>(length));
}

}  // namespace

std::optional<size_t> safetensors_dtype_size(std::string_view dtype) {
  static constexpr std::pair<std::string_view, size_t> kSizes[] = {
      {"F64", 8},  {"F32", 4}, {"F16", 2},     {"BF16", 2},    {"I64", 8},    {"I32", 4},
      {"I16", 2},  {"I8", 1},  {"U64", 8},     {"U32", 4},     {"U16", 2},    {"U8", 1},
      {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return std::nullopt;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Expected<std::vector<TensorEntry>> parse_safetensors_header(const std::string& file_name,
                                                            std::span<const std::byte> file) {
  const Expected<std::span<const std::byte>> header = header_bytes(file_name, file);
  if (!header) return header.status();
  const Expected<Json> json = parse_json_object(file_name + ": header", *header);
  if (!json) return json.status();

  const size_t data_begin = kLengthBytes + header->size();
  const size_t data_bytes = file.size() - data_begin;
  std::vector<TensorEntry> entries;
  entries.reserve(json->size());
  for (const auto& [name, value] : json->items()) {
    if (name == "__metadata__") continue;
    const std::string tensor = file_name + ": tensor " + quote_name(name);
    TensorEntry entry;
    entry.name = name;
    if (Status status = read_entry(tensor, value, data_bytes, entry); !status) return status;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  if (Status status = check_tiling(file_name, entries, data_bytes); !status) return status;
  for (TensorEntry& entry : entries) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return entries;
}

}  // namespace anyslot

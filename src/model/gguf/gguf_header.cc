#include "model/gguf/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "model/json_file.h"

namespace anyslot {

static_assert(std::endian::native == std::endian::little, "GGUF files are read as they lie");

namespace {

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint32_t kMaxDimensions = 4;
constexpr size_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = int64_t{1} << 20;
constexpr std::string_view kAlignmentKey = "general.alignment";

/// 0 for strings and lists.
size_t bytes_of(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
    case GgufValueType::kInt8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kUint16:
    case GgufValueType::kInt16:
      return 2;
    case GgufValueType::kUint32:
    case GgufValueType::kInt32:
    case GgufValueType::kFloat32:
      return 4;
    case GgufValueType::kUint64:
    case GgufValueType::kInt64:
    case GgufValueType::kFloat64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      return 0;
  }
  return 0;
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

GgufNumber decode_number(GgufValueType type, const std::byte* at) {
  switch (type) {
    case GgufValueType::kUint8:
      return int64_t{load<uint8_t>(at)};
    case GgufValueType::kInt8:
      return int64_t{load<int8_t>(at)};
    case GgufValueType::kUint16:
      return int64_t{load<uint16_t>(at)};
    case GgufValueType::kInt16:
      return int64_t{load<int16_t>(at)};
    case GgufValueType::kUint32:
      return int64_t{load<uint32_t>(at)};
    case GgufValueType::kInt32:
      return int64_t{load<int32_t>(at)};
    case GgufValueType::kInt64:
      return load<int64_t>(at);
    case GgufValueType::kUint64: {
      const auto value = load<uint64_t>(at);
      if (value > uint64_t{std::numeric_limits<int64_t>::max()}) return static_cast<double>(value);
      return static_cast<int64_t>(value);
    }
    case GgufValueType::kFloat32:
      return double{load<float>(at)};
    case GgufValueType::kFloat64:
      return load<double>(at);
    case GgufValueType::kBool:
      return load<uint8_t>(at) != 0;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return int64_t{0};
}

/// Reads one thing after another. After the first failure everything is empty or 0.
class HeaderReader {
 public:
  HeaderReader(const std::string& file_name, std::span<const std::byte> file)
      : file_name_(file_name), file_(file) {}

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  size_t position() const { return position_; }

  void fail(const std::string& what) {
    if (ok()) status_ = failed_precondition(file_name_ + ": " + what);
  }

  /// `what` names the place in messages.
  std::span<const std::byte> take(uint64_t size, const std::string& what) {
    if (!ok()) return {};
    if (size > file_.size() - position_) {
      fail(what + " does not fit the file of " + std::to_string(file_.size()) +
           " bytes; it is truncated or damaged");
      return {};
    }
    const auto taken = file_.subspan(position_, static_cast<size_t>(size));
    position_ += taken.size();
    return taken;
  }

  template <typename T>
  T number(const std::string& what) {
    const std::span<const std::byte> bytes = take(sizeof(T), what);
    return ok() ? load<T>(bytes.data()) : T{};
  }

  std::string_view text(uint64_t max_bytes, const std::string& what) {
    const auto length = number<uint64_t>(what);
    if (length > max_bytes) fail(what + " has " + std::to_string(length) + " bytes");
    const std::span<const std::byte> bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  GgufValueType value_type(const std::string& what) {
    const auto type = number<uint32_t>(what);
    if (type > static_cast<uint32_t>(GgufValueType::kFloat64)) {
      fail(what + " has the unknown type " + std::to_string(type));
      return GgufValueType::kUint8;
    }
    return static_cast<GgufValueType>(type);
  }

  GgufValue value(const std::string& what) {
    const GgufValueType type = value_type(what);
    if (type == GgufValueType::kArray) return array(what);
    if (type == GgufValueType::kString) {
      return text(std::numeric_limits<uint64_t>::max(), what);
    }
    const std::span<const std::byte> bytes = take(bytes_of(type), what);
    if (!ok()) return false;
    check_bools(type, bytes, what);
    return std::visit([](auto number) { return GgufValue(number); },
                      decode_number(type, bytes.data()));
  }

 private:
  GgufArray array(const std::string& what) {
    GgufArray array;
    array.type = value_type(what);
    const auto count = number<uint64_t>(what);
    if (array.type == GgufValueType::kArray) {
      fail(what + " is a list of lists, which is not supported");
    }
    // Every element takes a byte of the file or more, a string eight.
    if (ok() && count > file_.size()) {
      fail(what + " has " + std::to_string(count) + " elements, more than the file has bytes");
    }
    if (!ok()) return {};
    array.count = static_cast<size_t>(count);
    if (array.type != GgufValueType::kString) {
      array.numbers = take(count * bytes_of(array.type), what);
      check_bools(array.type, array.numbers, what);
      return array;
    }
    constexpr size_t kMostStrings = size_t{1} << 24;  // more than any vocabulary or list of merges
    if (array.count > kMostStrings) {
      fail(what + " has " + std::to_string(array.count) + " strings, more than " +
           std::to_string(kMostStrings));
    }
    for (size_t i = 0; i < array.count && ok(); ++i) {
      array.strings.push_back(text(std::numeric_limits<uint64_t>::max(), what));
    }
    return array;
  }

  void check_bools(GgufValueType type, std::span<const std::byte> bytes, const std::string& what) {
    if (type != GgufValueType::kBool) return;
    for (const std::byte byte : bytes) {
      if (std::to_integer<int>(byte) > 1) {
        fail(what + " holds a truth value that is neither 0 nor 1; the file is damaged");
      }
    }
  }

  const std::string& file_name_;
  std::span<const std::byte> file_;
  size_t position_ = 0;
  Status status_;
};

struct Counts {
  uint64_t tensors = 0;
  uint64_t metadata = 0;
};

Counts read_counts(HeaderReader& reader) {
  const std::span<const std::byte> magic = reader.take(4, "the mark \"GGUF\" at its beginning");
  if (reader.ok() && std::memcmp(magic.data(), "GGUF", 4) != 0) {
    reader.fail("does not begin with \"GGUF\"; this is no GGUF file");
  }
  const auto version = reader.number<uint32_t>("the version");
  if (reader.ok() && version == __builtin_bswap32(kGgufVersion)) {
    reader.fail("is big-endian; convert the model anew for a little-endian machine");
  }
  if (reader.ok() && version != kGgufVersion) {
    reader.fail("is GGUF version " + std::to_string(version) +
                "; version 3 is needed: convert the model anew, with a newer converter");
  }
  Counts counts;
  counts.tensors = reader.number<uint64_t>("the number of tensors");
  counts.metadata = reader.number<uint64_t>("the number of metadata");
  return counts;
}

void read_metadata(HeaderReader& reader, uint64_t count, GgufMap<GgufValue>& metadata) {
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    const std::string key(reader.text(kMaxKeyBytes, "the key of metadata " + std::to_string(i)));
    const std::string what = "metadata " + quote_name(key);
    if (reader.ok() && key.empty()) reader.fail("metadata " + std::to_string(i) + " has no key");
    GgufValue value = reader.value(what);
    if (reader.ok() && !metadata.emplace(key, std::move(value)).second) {
      reader.fail(what + " stands twice");
    }
  }
}

size_t read_alignment(HeaderReader& reader, const GgufMap<GgufValue>& metadata) {
  const auto entry = metadata.find(kAlignmentKey);
  if (entry == metadata.end()) return kDefaultAlignment;
  const auto* alignment = std::get_if<int64_t>(&entry->second);
  if (alignment == nullptr || *alignment < 8 || *alignment > kMaxAlignment || *alignment % 8 != 0) {
    reader.fail("metadata \"general.alignment\" must be a multiple of 8, from 8 to " +
                std::to_string(kMaxAlignment));
    return kDefaultAlignment;
  }
  return static_cast<size_t>(*alignment);
}

std::vector<int64_t> read_shape(HeaderReader& reader, const std::string& tensor) {
  const auto dimensions = reader.number<uint32_t>(tensor);
  if (reader.ok() && (dimensions < 1 || dimensions > kMaxDimensions)) {
    reader.fail(tensor + " has " + std::to_string(dimensions) + " dimensions; 1 to 4 are possible");
  }
  std::vector<int64_t> shape;
  for (uint32_t i = 0; i < dimensions && reader.ok(); ++i) {
    const auto size = reader.number<uint64_t>(tensor);
    if (reader.ok() && (size < 1 || size > uint64_t{std::numeric_limits<int64_t>::max()})) {
      reader.fail(tensor + " has a dimension of " + std::to_string(size));
    }
    shape.insert(shape.begin(), static_cast<int64_t>(size));  // the file has rows first
  }
  return shape;
}

/// nullopt when it overflows or rows are no whole blocks.
std::optional<size_t> stored_bytes(const GgufTensorType& type, std::span<const int64_t> shape) {
  if (static_cast<uint64_t>(shape.back()) % type.block_elements != 0) return std::nullopt;
  size_t bytes = type.block_bytes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = static_cast<size_t>(shape[i]);
    const size_t count = i + 1 == shape.size() ? size / type.block_elements : size;
    if (__builtin_mul_overflow(bytes, count, &bytes)) return std::nullopt;
  }
  return bytes;
}

/// `begin` and `end` count from the data's begin.
GgufTensor read_tensor(HeaderReader& reader, const std::string& what, size_t alignment) {
  GgufTensor tensor;
  tensor.shape = read_shape(reader, what);
  const auto type = reader.number<uint32_t>(what);
  const auto offset = reader.number<uint64_t>(what);
  if (!reader.ok()) return tensor;
  tensor.type = find_gguf_type(type);
  if (tensor.type == nullptr) {
    reader.fail(what + " is of type number " + std::to_string(type) +
                ", which is not known here; take a file whose tensors are of these types: " +
                supported_gguf_types());
    return tensor;
  }
  const std::optional<size_t> bytes = stored_bytes(*tensor.type, tensor.shape);
  if (!bytes) {
    reader.fail(what + ": its shape is impossible for type " + tensor.type->name);
    return tensor;
  }
  if (offset % alignment != 0) {
    reader.fail(what + ": its offset " + std::to_string(offset) + " is no multiple of " +
                std::to_string(alignment));
  }
  tensor.begin = static_cast<size_t>(offset);
  if (__builtin_add_overflow(tensor.begin, *bytes, &tensor.end)) {
    reader.fail(what + ": its offset " + std::to_string(offset) + " is too large");
  }
  return tensor;
}

void read_tensors(HeaderReader& reader, uint64_t count, size_t alignment,
                  GgufMap<GgufTensor>& tensors) {
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    const std::string name(reader.text(kMaxKeyBytes, "the name of tensor " + std::to_string(i)));
    const std::string what = "tensor " + quote_name(name);
    GgufTensor tensor = read_tensor(reader, what, alignment);
    if (reader.ok() && !tensors.emplace(name, std::move(tensor)).second) {
      reader.fail(what + " stands twice");
    }
  }
}

/// Makes offsets those of the file, once all tensors fit the data and lie apart.
void place_tensors(HeaderReader& reader, size_t file_bytes, size_t alignment,
                   GgufMap<GgufTensor>& tensors) {
  const size_t data_begin = (reader.position() + alignment - 1) / alignment * alignment;
  const size_t data_bytes = file_bytes - std::min(file_bytes, data_begin);
  std::vector<std::pair<size_t, const std::string*>> by_offset;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.end > data_bytes) {
      reader.fail("tensor " + quote_name(name) + " ends at byte " + std::to_string(tensor.end) +
                  " of the data, which has " + std::to_string(data_bytes) +
                  "; the file is truncated or damaged");
      return;
    }
    by_offset.emplace_back(tensor.begin, &name);
  }
  std::ranges::sort(by_offset);
  size_t filled = 0;
  for (const auto& [begin, name] : by_offset) {
    GgufTensor& tensor = tensors.find(*name)->second;
    if (begin < filled) {
      reader.fail("tensor " + quote_name(*name) + ": its data overlap those of another tensor");
    }
    filled = tensor.end;
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
}

}  // namespace

GgufNumber GgufArray::number(size_t index) const {
  return decode_number(type, numbers.data() + index * bytes_of(type));
}

Expected<GgufHeader> parse_gguf_header(const std::string& file_name,
                                       std::span<const std::byte> file) {
  HeaderReader reader(file_name, file);
  GgufHeader header;
  const Counts counts = read_counts(reader);
  read_metadata(reader, counts.metadata, header.metadata);
  const size_t alignment = read_alignment(reader, header.metadata);
  read_tensors(reader, counts.tensors, alignment, header.tensors);
  if (reader.ok()) place_tensors(reader, file.size(), alignment, header.tensors);
  if (!reader.ok()) return reader.status();
  return header;
}

}  // namespace anyslot

#include "model/weight_digest.h"

#include <algorithm>

namespace anyslot {

namespace {

constexpr size_t kHashWholeBytes = size_t{256} << 20;
constexpr size_t kSampleBytes = size_t{4} << 10;
constexpr size_t kSampleStride = size_t{4} << 20;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void hash_sampled(std::span<const std::byte> bytes, DigestBuilder& builder) {
  for (size_t begin = 0; begin < bytes.size(); begin += kSampleStride) {
    builder.add(as_text(bytes.subspan(begin, std::min(kSampleBytes, bytes.size() - begin))));
  }
  builder.add(as_text(bytes.last(std::min(kSampleBytes, bytes.size()))));
}

}  // namespace

WeightDigest::WeightDigest(size_t total_bytes) : whole_(total_bytes <= kHashWholeBytes) {
  builder_.add("anyslot weights 1");
}

void WeightDigest::add(std::string_view name, std::string_view type, std::span<const int64_t> shape,
                       std::span<const std::byte> data) {
  builder_.add(name).add(type).add(static_cast<int64_t>(shape.size()));
  for (const int64_t dimension : shape) builder_.add(dimension);
  if (whole_) {
    builder_.add(as_text(data));
  } else {
    hash_sampled(data, builder_);
  }
}

}  // namespace anyslot

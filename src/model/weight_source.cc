#include "model/weight_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "base/random_normal.h"
#include "base/thread_pool.h"

namespace anyslot {

namespace {

class FileWeights final : public WeightSource {
 public:
  explicit FileWeights(TensorStore store) : store_(std::move(store)) {}

  Expected<LoadedTensor> load(const WeightRef& weight) override {
    const Expected<TensorView> view = store_.get(weight.name, weight.shape);
    if (!view) return view.status();
    return LoadedTensor{*view, nullptr};
  }

  Status check(const WeightRef& weight) const override {
    return store_.check(weight.name, weight.shape);
  }

  Digest fingerprint() const override { return store_.fingerprint(); }

 private:
  TensorStore store_;
};

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(uint64_t seed, int num_threads) : seed_(seed), threads_(num_threads) {}

  Expected<LoadedTensor> load(const WeightRef& weight) override {
    int64_t count = 1;
    for (const int64_t dimension : weight.shape) count *= dimension;
    const int64_t cols = weight.shape.back();
    LoadedTensor tensor;
    tensor.memory =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(count) * sizeof(bf16_t));
    tensor.view = {tensor.memory.get(), DType::kBFloat16, count / cols, cols, cols};
    const std::span<bf16_t> values(tensor.view.row_as<bf16_t>(0), static_cast<size_t>(count));
    if (weight.shape.size() == 1) {
      std::ranges::fill(values, float_to_bf16(1.0F));
    } else {
      fill(values, seed_of(weight.name), 1.0 / std::sqrt(static_cast<double>(cols)));
    }
    return tensor;
  }

  Status check(const WeightRef& /*weight*/) const override { return {}; }

  Digest fingerprint() const override {
    return DigestBuilder()
        .add("anyslot random weights 1")
        .add(static_cast<int64_t>(seed_))
        .finish();
  }

 private:
  uint64_t seed_of(const std::string& name) const {
    const Digest digest = DigestBuilder().add(static_cast<int64_t>(seed_)).add(name).finish();
    uint64_t seed;
    std::memcpy(&seed, digest.bytes.data(), sizeof seed);
    return seed;
  }

  void fill(std::span<bf16_t> values, uint64_t seed, double scale) {
    constexpr int64_t kChunk = int64_t{1} << 18;
    const RandomNormal normal(scale);
    const auto count = static_cast<int64_t>(values.size());
    threads_.parallel_for((count + kChunk - 1) / kChunk, [&](int64_t chunk, int) {
      const int64_t begin = chunk * kChunk;
      normal.fill(seed, begin,
                  values.subspan(static_cast<size_t>(begin),
                                 static_cast<size_t>(std::min(kChunk, count - begin))));
    });
  }

  uint64_t seed_;
  ThreadPool threads_;
};

}  // namespace

std::unique_ptr<WeightSource> file_weights(TensorStore store) {
  return std::make_unique<FileWeights>(std::move(store));
}

std::unique_ptr<WeightSource> random_weights(uint64_t seed, int num_threads) {
  return std::make_unique<RandomWeights>(seed, num_threads);
}

}  // namespace anyslot

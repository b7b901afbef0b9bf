#include "random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace anyslot::bench {

namespace {

constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

RandomStream::RandomStream(uint64_t seed, uint64_t stream)
    : state_(mixed(seed + kStep) ^ mixed(mixed(stream + kStep) + kStep)) {}

uint64_t RandomStream::next() { return mixed(state_ += kStep); }

double RandomStream::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

uint64_t RandomStream::below(uint64_t bound) {
  const uint64_t uneven = (0 - bound) % bound;  // 2^64 mod bound numbers would come once too often
  while (true) {
    const uint64_t bits = next();
    if (bits >= uneven) return bits % bound;
  }
}

int64_t RandomStream::between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double RandomStream::gamma(double shape) {
  if (shape == 1) return -std::log(1 - uniform());
  if (shape < 1) {  // a variable of shape + 1 times a power of a uniform one
    const double scaled = gamma(shape + 1) * (shape + 1);
    return scaled * std::pow(1 - uniform(), 1 / shape) / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v / shape;
  }
}

RankedChoice::RankedChoice(size_t size, double exponent) {
  double sum = 0;
  for (size_t rank = 0; rank < size; ++rank) {
    weights_.push_back(std::pow(static_cast<double>(rank + 1), -exponent));
    sums_.push_back(sum += weights_.back());
  }
}

size_t RankedChoice::draw(RandomStream& random) const {
  const double place = random.uniform() * sums_.back();
  const auto found = std::ranges::upper_bound(sums_, place);
  return std::min(static_cast<size_t>(found - sums_.begin()), sums_.size() - 1);
}

std::vector<size_t> RankedChoice::draw_different(size_t count, RandomStream& random) const {
  constexpr int kTries = 64;  // then the taken ranks are too heavy to be missed by luck
  std::vector<size_t> ranks;
  std::vector<bool> taken(weights_.size(), false);
  while (ranks.size() < std::min(count, weights_.size())) {
    size_t rank = draw(random);
    for (int i = 0; i < kTries && taken[rank]; ++i) rank = draw(random);
    if (taken[rank]) {
      double left = 0;
      for (size_t r = 0; r < weights_.size(); ++r) left += taken[r] ? 0 : weights_[r];
      double place = random.uniform() * left;
      for (size_t r = 0; r < weights_.size(); ++r) {
        if (taken[r]) continue;
        rank = r;
        place -= weights_[r];
        if (place < 0) break;
      }
    }
    taken[rank] = true;
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace anyslot::bench

#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace anyslot::bench {

/// A stream of random numbers, SplitMix64 (Steele et al., OOPSLA 2014): the same for the same seed
/// and stream with every standard library, whose distributions differ.
class RandomStream {
 public:
  /// Streams of one seed are independent of each other.
  RandomStream(uint64_t seed, uint64_t stream);

  uint64_t next();
  /// In [0, 1), of 53 bits.
  double uniform();
  /// In [0, bound), without bias; `bound` above 0.
  uint64_t below(uint64_t bound);
  /// In [low, high].
  int64_t between(int64_t low, int64_t high);
  /// Mean 1, shape `shape` above 0; shape 1 is exponential. Marsaglia and Tsang, "A simple method
  /// for generating gamma variables" (2000).
  double gamma(double shape);

  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  double normal();

  uint64_t state_;
};

/// Draws ranks in [0, size): rank r in proportion to (r + 1)^-exponent; exponent 0 is uniform.
class RankedChoice {
 public:
  RankedChoice(size_t size, double exponent);

  size_t draw(RandomStream& random) const;
  /// `count` different ranks, at most size: each is drawn among those that are left.
  std::vector<size_t> draw_different(size_t count, RandomStream& random) const;

 private:
  std::vector<double> weights_;
  std::vector<double> sums_;  // of the weights up to each rank, it included
};

}  // namespace anyslot::bench

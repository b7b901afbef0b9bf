// The frequencies of a RoPE by the rules of transformers (modeling_rope_utils.py), in float64.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <variant>
#include <vector>

#include "model/rope_config.h"

namespace anyslot {

namespace {

/// Changes the frequencies of an unscaled RoPE; gives what the turned Q and the turned K are
/// multiplied by.
class Scale {
 public:
  explicit Scale(const RopeConfig& rope, std::vector<double>& inv_freq)
      : rope_(rope), inv_freq_(inv_freq) {}

  double operator()(std::monostate) const { return 1.0; }

  double operator()(const LinearRopeScaling& scaling) const {
    for (double& value : inv_freq_) value /= scaling.factor;
    return 1.0;
  }

  double operator()(const Llama3RopeScaling& scaling) const {
    for (double& value : inv_freq_) {
      const double turns = static_cast<double>(scaling.original_max_position_embeddings) * value /
                           (2.0 * std::numbers::pi);
      const double kept =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      value = std::lerp(value / scaling.factor, value, std::clamp(kept, 0.0, 1.0));
    }
    return 1.0;
  }

  double operator()(const YarnRopeScaling& scaling) const {
    double first = pair_that_turns(scaling.beta_fast, scaling);
    double last = pair_that_turns(scaling.beta_slow, scaling);
    if (scaling.truncate) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, static_cast<double>(rope_.rotary_dim - 1));
    if (first == last) last += 0.001;
    for (size_t j = 0; j < inv_freq_.size(); ++j) {
      const double slowed = std::clamp((static_cast<double>(j) - first) / (last - first), 0.0, 1.0);
      inv_freq_[j] = std::lerp(inv_freq_[j], inv_freq_[j] / scaling.factor, slowed);
    }
    return scaling.attention_factor;
  }

  double operator()(const LongRopeScaling& scaling) const {
    for (size_t j = 0; j < inv_freq_.size(); ++j) inv_freq_[j] /= scaling.factors[j];
    return scaling.attention_factor;
  }

 private:
  /// The pair of dimensions, not whole, that turns `turns` times within the original context.
  double pair_that_turns(double turns, const YarnRopeScaling& scaling) const {
    const auto original = static_cast<double>(scaling.original_max_position_embeddings);
    return rope_.rotary_dim * std::log(original / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(rope_.theta));
  }

  const RopeConfig& rope_;
  std::vector<double>& inv_freq_;
};

}  // namespace

RopeParameters describe_rope(const RopeConfig& rope) {
  RopeParameters parameters;
  for (int i = 0; i < rope.rotary_dim; i += 2) {
    parameters.inv_freq.push_back(std::pow(rope.theta, -static_cast<double>(i) / rope.rotary_dim));
  }
  const double factor = std::visit(Scale(rope, parameters.inv_freq), rope.scaling);
  parameters.attention_factor = factor * factor;
  return parameters;
}

RopeParameters no_rotation(int head_dim) {
  RopeParameters parameters;
  parameters.inv_freq.assign(static_cast<size_t>(head_dim / 2), 0.0);
  return parameters;
}

}  // namespace anyslot

#include "engine/rope_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

namespace anyslot::internal {

namespace {

/// Fills in what the scaling adds.
struct ScalingDescriber {
  RopeReport& report;

  void operator()(std::monostate) const { report.type = "default"; }
  void operator()(const LinearRopeScaling& scaling) const {
    report.type = "linear";
    report.factor = scaling.factor;
  }
  void operator()(const Llama3RopeScaling& scaling) const {
    report.type = "llama3";
    report.factor = scaling.factor;
    report.original_context = scaling.original_max_position_embeddings;
  }
  void operator()(const YarnRopeScaling& scaling) const {
    report.type = "yarn";
    report.factor = scaling.factor;
    report.original_context = scaling.original_max_position_embeddings;
  }
  void operator()(const LongRopeScaling& /*scaling*/) const { report.type = "longrope"; }
};

RopeReport describe(const RopeConfig& rope) {
  RopeReport report;
  report.theta = rope.theta;
  report.rotary_dim = rope.rotary_dim;
  std::visit(ScalingDescriber{report}, rope.scaling);
  return report;
}

/// nullptr: the layer is not turned.
const RopeConfig* rope_of(const ModelConfig& config, int layer) {
  const bool turned =
      config.turned_layers.empty() || config.turned_layers[static_cast<size_t>(layer)];
  if (!turned) return nullptr;
  return config.local_rope && config.is_local(layer) ? &*config.local_rope : &config.rope;
}

}  // namespace

std::vector<RopeReport> ropes_of(const ModelConfig& config) {
  std::vector<std::pair<const RopeConfig*, RopeReport>> ropes;
  for (int i = 0; i < config.num_layers; ++i) {
    const RopeConfig* rope = rope_of(config, i);
    auto known = std::ranges::find(ropes, rope, [](const auto& entry) { return entry.first; });
    if (known == ropes.end()) {
      RopeReport report = rope == nullptr ? RopeReport() : describe(*rope);
      if (rope == nullptr) report.type = "none";
      known = ropes.insert(ropes.end(), {rope, std::move(report)});
    }
    ++known->second.num_layers;
  }
  std::vector<RopeReport> reports;
  for (auto& [rope, report] : ropes) reports.push_back(std::move(report));
  return reports;
}

}  // namespace anyslot::internal

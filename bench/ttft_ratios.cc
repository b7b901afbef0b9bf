// Time to first token of every method over 16 documents, as ratios of one interleaved run on the
// bundled model. Exits with 1 when lazy is not as far ahead as the project promises, or when full
// is not an honest baseline.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "anyslot/anyslot.h"
#include "matmul_rate.h"

namespace anyslot::bench {
namespace {

constexpr int kDocuments = 16;
constexpr int kDocumentTokens = 125;
constexpr int kQuestionTokens = 48;
constexpr int kRounds = 15;
constexpr int kPairedRounds = 60;
constexpr int64_t kLayers = 8, kHidden = 384, kHeadColumns = 640, kQueryColumns = 384,
                  kIntermediate = 1024;

using Ids = std::vector<int32_t>;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Series {
  std::string name;
  Method method = Method::kLazy;
  bool fixed_order = false;
  std::vector<double> ttft_ms;
};

class Workload {
 public:
  Workload() {
    for (int i = 0; i < kDocuments; ++i) documents_.push_back(random_ids(kDocumentTokens));
  }

  Ids random_ids(int count) {
    std::uniform_int_distribution<int32_t> uniform(300, 4000);
    Ids ids(static_cast<size_t>(count));
    for (int32_t& id : ids) id = uniform(random_);
    return ids;
  }

  Request next(Method method, bool fixed_order) {
    if (!fixed_order) std::shuffle(documents_.begin(), documents_.end(), random_);
    Request request;
    for (const Ids& ids : fixed_order ? fixed_ : documents_) {
      Segment segment;
      segment.kind = SegmentKind::kDocument;
      segment.token_ids = ids;
      request.segments.push_back(std::move(segment));
    }
    if (fixed_.empty()) fixed_ = documents_;
    Segment question;
    question.token_ids = random_ids(kQuestionTokens);
    request.segments.push_back(std::move(question));
    request.method = method;
    request.sampling.max_tokens = 1;
    return request;
  }

 private:
  std::mt19937 random_{2026};
  std::vector<Ids> documents_;
  std::vector<Ids> fixed_;
};

Expected<double> ttft(Engine& engine, const Request& request) {
  auto stream = engine.submit(request);
  if (!stream.ok()) return stream.status();
  for (;;) {
    const Event event = stream->next();
    if (!event.error.empty()) return internal_error(event.error);
    if (event.finish_reason) return event.usage.ttft_ms;
  }
}

Status measure(Engine& engine, std::vector<Series>& all) {
  Workload workload;
  for (int round = -1; round < kRounds; ++round) {  // round -1 warms caches and kernels
    for (Series& series : all) {
      const auto time = ttft(engine, workload.next(series.method, series.fixed_order));
      if (!time.ok()) return time.status();
      if (round >= 0) series.ttft_ms.push_back(*time);
    }
  }
  return engine.check_integrity();
}

// Median of the ratios of two ways measured next to each other, in turns, so that what disturbs the
// machine disturbs both. For ways that lie close together.
Expected<double> paired_ratio(Engine& engine, const Series& first, const Series& second) {
  Workload workload;
  std::vector<double> ratios;
  for (int round = -2; round < kPairedRounds; ++round) {
    double times[2] = {};
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (round & 1) != 0 ? 1 - turn : turn;
      const Series& series = which == 0 ? first : second;
      const auto time = ttft(engine, workload.next(series.method, series.fixed_order));
      if (!time.ok()) return time.status();
      times[which] = *time;
    }
    if (round >= 0) ratios.push_back(times[0] / times[1]);
  }
  return median_of(std::move(ratios));
}

// How near full's whole prefill comes to oneDNN's bare products of the same layers.
double honesty_of_full(double full_ms, ComputeType dtype) {
  const int64_t rows = kDocuments * kDocumentTokens + kQuestionTokens;
  const std::vector<MatmulShape> layer{{rows, kHidden, kHeadColumns},
                                       {rows, kQueryColumns, kHidden},
                                       {rows, kHidden, 2 * kIntermediate},
                                       {rows, kIntermediate, kHidden}};
  double operations = 0;
  for (const MatmulShape& shape : layer) {
    operations += 2.0 * static_cast<double>(kLayers * shape.rows * shape.in * shape.out);
  }
  return operations / (full_ms / 1000) / onednn_rate(layer, dtype);
}

bool check(const std::string& claim, double value, double limit, bool at_most) {
  const bool holds = at_most ? value <= limit : value >= limit;
  fmt::print("{:<66} {:>7.3f}  {} {:.3f}  {}\n", claim, value, at_most ? "<=" : ">=", limit,
             holds ? "ok" : "FAILED");
  return holds;
}

int run(ComputeType dtype) {
  EngineConfig config;
  config.model_path = ANYSLOT_MODEL_DIR;
  config.dtype = dtype;
  auto engine = Engine::open(config);
  if (!engine.ok()) {
    fmt::print("{}\n", engine.status().message());
    return 1;
  }
  std::vector<Series> all;
  for (const Method method : kAllMethods)
    all.push_back({std::string(method_name(method)), method, false, {}});
  all.push_back({"lazy, fixed order", Method::kLazy, true, {}});
  if (const Status status = measure(*engine, all); !status.ok()) {
    fmt::print("{}\n", status.message());
    return 1;
  }
  std::map<std::string, double> median;
  fmt::print("rag-demo-14m, {}, {} documents of {} tokens in a new order each time, median of {}\n",
             compute_type_name(dtype), kDocuments, kDocumentTokens, kRounds);
  for (const Series& series : all) {
    median[series.name] = median_of(series.ttft_ms);
    fmt::print("  {:<18} {:>9.3f} ms\n", series.name, median[series.name]);
  }
  const auto to_fixed = paired_ratio(*engine, all[0], all.back());
  const auto to_block = paired_ratio(*engine, all[0], all[1]);
  if (!to_fixed.ok() || !to_block.ok()) return 1;
  bool good = check("lazy / prefix", median["lazy"] / median["prefix"], 1.0 / 8, true);
  good &= check("lazy / full", median["lazy"] / median["full"], 1.0 / 8, true);
  good &= check("lazy in new orders / lazy in a fixed order", *to_fixed, 1.1, true);
  good &= check("lazy / block", *to_block, 1.0, true);
  good &= check("rate of full's products over its whole time / oneDNN's own rate",
                honesty_of_full(median["full"], dtype), 0.3, false);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace anyslot::bench

int main(int argc, char** argv) {
  const auto dtype = anyslot::parse_compute_type(argc > 1 ? argv[1] : "bfloat16");
  return dtype.ok() ? anyslot::bench::run(*dtype) : 2;
}

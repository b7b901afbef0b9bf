#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"
#include "bench/serve/serve.h"

namespace anyslot::bench {

/// The sizes of a sweep's workloads.
struct SweepOptions {
  EngineConfig engine = {};  // its method is that of the run at hand
  std::vector<Method> methods = {Method::kLazy, Method::kBlock, Method::kMepic, Method::kPrefix,
                                 Method::kFull};
  std::vector<std::string> figures = {};  // names of sweep_figure_names(); empty: all
  int num_documents = 100;                // in the pool
  int documents_per_prompt = 5;
  int document_len = 256;  // tokens
  int question_len = 32;
  int output_len = 32;
  double zipf = 2.1;
  int num_prompts = 16;    // of a run without a request rate
  double run_seconds = 2;  // of arrivals in a run with one
  std::vector<double> request_rates =
      {};  // per second; empty: chosen by what method full can serve
  uint64_t seed = 0;
};

/// A field of a figure's rows and how it is called.
struct SweepField {
  std::string name;
  std::string label;
  bool logarithmic = false;  // its axis
};

/// One run: a workload, at one place of the x axis.
struct SweepPoint {
  double x = 0;
  ServeOptions serve;
  int64_t kv_cache_bytes = 0;  // 0: that of the options
};

/// What a figure shows, by the same points for each method.
struct SweepFigure {
  std::string id;
  std::string title;
  std::string text;
  SweepField x;
  std::vector<SweepField> charts = {};
  std::vector<SweepPoint> points = {};
};

/// What figures are made from beside the options.
struct SweepFacts {
  int64_t kv_bytes_per_token = 0;
  int64_t max_model_len = 0;
  double full_seconds = 0;  // that method full takes for one prompt of the sweep alone
};

std::vector<std::string_view> sweep_figure_names();

/// A few prompts of the sweep, one at a time.
SweepPoint single_request(const SweepOptions& options);

/// The figures that the options name. Fails with kInvalidArgument for a name that is none, and for
/// prompts that are longer than the model takes.
Expected<std::vector<SweepFigure>> plan_sweep(const SweepOptions& options, const SweepFacts& facts);

/// Runs one point under one method with an empty cache.
using RunPoint = std::function<Expected<ServeResult>(const SweepPoint& point, Method method)>;

/// Runs every point under every method, the methods in turns. Stops early, without an error, once
/// `stopped` says so. Returns the figures as html_report() takes them, with the rows that were
/// measured. `done` is called after each run.
Expected<nlohmann::ordered_json> run_sweep(const std::vector<SweepFigure>& figures,
                                           const std::vector<Method>& methods, const RunPoint& run,
                                           const std::function<bool()>& stopped,
                                           const std::function<void(int64_t done)>& done);

/// The methods side by side where documents come in skewed popularity at the highest rate, the one
/// that answers first before the others: time to first token and throughput, with what explains
/// them, cached tokens and KV. Of the figures that run_sweep() returned; {"request_rate",
/// "columns", "rows"}, the last two as a figure has them; null when rate-skewed does not have two
/// methods.
nlohmann::ordered_json sweep_ranking(const nlohmann::ordered_json& figures);

/// Says of a ranking which method answers first, which generates most, and by how much; "" for
/// null.
std::string sweep_summary(const nlohmann::ordered_json& ranking);

/// Requests of all rows that failed.
int64_t failed_requests(const nlohmann::ordered_json& figures);

}  // namespace anyslot::bench

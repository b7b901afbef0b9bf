// ragqa_test DTYPE WEIGHTS KV METHOD...: answers all rows of ragqa-dev with each method and holds
// the exact match to the NumPy reference's. `misplaced` is the control: documents keep wrong
// positions, and the questions on their order must fail.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "anyslot/anyslot.h"

namespace anyslot {
namespace {

using nlohmann::json;

constexpr double kReference = 0.963;  // tools/demo_model/reference_eval.py, lazy and full alike
constexpr double kTolerance = 0.005;
constexpr double kOrderAnswered = 0.93;  // the reference: 0.944
constexpr double kOrderMisplaced = 0.4;  // the reference: 0.29
constexpr size_t kConcurrency = 16;

struct Row {
  std::vector<Document> documents;
  std::string question;
  std::string answer;
  bool asks_for_order = false;
};

struct Score {
  double all = 0;
  double order = 0;
};

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    const json object = json::parse(line);
    Row row{{}, object["question"], object["answers"][0], object["hops"] == 9};
    for (const json& document : object["documents"]) {
      row.documents.push_back({document["title"].get<std::string>(), document["text"], ""});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool finish_front(std::deque<std::pair<const Row*, Stream>>& running, std::string& error) {
  auto& [row, stream] = running.front();
  std::string text;
  for (;;) {
    const Event event = stream.next();
    text += event.text;
    if (!event.finish_reason) continue;
    if (!event.error.empty()) error = event.error;
    return text == row->answer;
  }
}

Expected<Score> score_rows(Engine& engine, const std::vector<Row>& rows) {
  std::deque<std::pair<const Row*, Stream>> running;
  int hits = 0;
  int order_hits = 0;
  int order_rows = 0;
  std::string error;
  const auto finish_one = [&] {
    const Row& row = *running.front().first;
    const bool hit = finish_front(running, error);
    running.pop_front();
    hits += hit ? 1 : 0;
    order_rows += row.asks_for_order ? 1 : 0;
    order_hits += hit && row.asks_for_order ? 1 : 0;
  };
  for (const Row& row : rows) {
    auto segments = engine.render_rag(row.documents, row.question);
    if (!segments.ok()) return segments.status();
    Request request;
    request.segments = std::move(*segments);
    request.sampling.max_tokens = 24;
    auto stream = engine.submit(request);
    if (!stream.ok()) return stream.status();
    running.emplace_back(&row, std::move(*stream));
    if (running.size() == kConcurrency) finish_one();
  }
  while (!running.empty()) finish_one();
  if (!error.empty()) return internal_error(error);
  if (Status status = engine.check_integrity(); !status.ok()) return status;
  if (engine.stats().referenced_entries != 0) return internal_error("entries are left referenced");
  return Score{hits / static_cast<double>(rows.size()),
               order_hits / std::max(1.0, double(order_rows))};
}

struct Types {
  ComputeType dtype = ComputeType::kBFloat16;
  WeightType weights = WeightType::kComputeType;
  KvCacheType kv_cache = KvCacheType::kComputeType;
};

Expected<Score> evaluate(const std::string& method, const Types& types,
                         const std::vector<Row>& rows) {
  EngineConfig config;
  config.model_path = ANYSLOT_MODEL_DIR;
  config.device = ANYSLOT_TEST_DEVICE;
  config.kv_cache_bytes = int64_t{4} << 30;
  config.dtype = types.dtype;
  config.weights = types.weights;
  config.kv_cache_dtype = types.kv_cache;
  config.ignore_placement_angles = method == "misplaced";
  if (!config.ignore_placement_angles) {
    const auto parsed = parse_method(method);
    if (!parsed.ok()) return parsed.status();
    config.method = *parsed;
  }
  auto engine = Engine::open(config);
  if (!engine.ok()) return engine.status();
  return score_rows(*engine, rows);
}

bool passes(const std::string& method, const Score& score) {
  if (method == "misplaced") return score.order < kOrderMisplaced;
  return std::abs(score.all - kReference) <= kTolerance && score.order > kOrderAnswered;
}

int run(const std::vector<std::string>& arguments) {
  const auto dtype = parse_compute_type(arguments.at(0));
  const auto weights = parse_weight_type(arguments.at(1));
  const auto kv_cache = parse_kv_cache_type(arguments.at(2));
  if (!dtype.ok() || !weights.ok() || !kv_cache.ok()) return 2;
  std::string name = arguments[0] + " weights " + arguments[1];
  if (*kv_cache != KvCacheType::kComputeType) name += " kv " + arguments[2];
  const std::vector<Row> rows = read_rows(ANYSLOT_SOURCE_DIR "/tests/data/ragqa-dev.jsonl");
  if (rows.size() != 900) return 2;
  bool good = true;
  for (size_t i = 3; i < arguments.size(); ++i) {
    const auto score = evaluate(arguments[i], {*dtype, *weights, *kv_cache}, rows);
    if (!score.ok()) {
      std::cout << arguments[i] << ": " << score.status().message() << "\n";
      return 1;
    }
    const bool pass = passes(arguments[i], *score);
    std::cout << fmt::format("{} {}: exact match {:.4f}, on the order questions {:.4f}: {}\n", name,
                             arguments[i], score->all, score->order, pass ? "ok" : "FAILED")
              << std::flush;
    good = good && pass;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace anyslot

int main(int argc, char** argv) { return argc < 5 ? 2 : anyslot::run({argv + 1, argv + argc}); }

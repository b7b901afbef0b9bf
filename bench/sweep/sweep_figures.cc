#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sweep.h"

namespace anyslot::bench {

namespace {

const SweepField kTtft{"mean_ttft_ms", "mean time to first token, ms", true};
const SweepField kThroughput{"output_throughput", "output tokens per second"};
const SweepField kRequests{"request_throughput", "answers per second"};
const SweepField kHits{"hit_ratio", "share of prompt tokens from the cache"};
const SweepField kTpot{"mean_tpot_ms", "mean time per output token, ms"};
const SweepField kPeakKv{"peak_kv_mib", "KV that running requests hold at the fullest, MiB"};

constexpr int64_t kTemplateTokens = 64;  // that a template adds to a prompt, at most

/// Makes the points of figures from the options.
class Points {
 public:
  /// `options` must outlive it.
  Points(const SweepOptions& options, const SweepFacts& facts) : options_(options), facts_(facts) {}

  const SweepOptions& options() const { return options_; }

  /// Requests as the options size them, all there at once, `concurrency` of them in flight.
  SweepPoint closed(double x, DocumentChoice choice, int concurrency) const {
    SweepPoint point;
    point.x = x;
    WorkloadOptions& workload = point.serve.workload;
    workload.kind = WorkloadKind::kRandom;
    workload.num_documents = options_.num_documents;
    workload.documents_per_prompt = options_.documents_per_prompt;
    workload.document_len = options_.document_len;
    workload.question_len = options_.question_len;
    workload.output_len = options_.output_len;
    workload.choice = choice;
    workload.zipf = options_.zipf;
    workload.order = DocumentOrder::kNew;
    point.serve.max_concurrency = concurrency;
    point.serve.num_prompts = std::max(options_.num_prompts, 2 * concurrency);
    point.serve.seed = options_.seed;
    return point;
  }

  /// Requests that come at a rate, under all methods with the same short memory for KV, unless the
  /// engine's options give one.
  SweepPoint open(double rate, DocumentChoice choice) const {
    SweepPoint point = closed(rate, choice, 0);
    point.serve.arrivals.request_rate = rate;
    point.serve.num_prompts =
        std::max(6, static_cast<int>(std::lround(rate * options_.run_seconds)));
    if (has_short_pool()) point.kv_cache_bytes = std::max(pool_bytes() / 2, least_pool_bytes());
    return point;
  }

  bool has_short_pool() const { return options_.engine.kv_cache_bytes == 0; }

  /// Says it to a reader.
  std::string short_pool_text() const {
    if (!has_short_pool()) return "";
    return pool_bytes() / 2 < least_pool_bytes()
               ? " All methods have the memory that one prompt needs under block."
               : " All methods have memory for half of the documents' KV.";
  }

  /// Rates from below what method full can serve to beyond what any can.
  std::vector<double> rates() const {
    if (!options_.request_rates.empty()) return options_.request_rates;
    std::vector<double> rates;
    for (const double load : {0.5, 2.0, 8.0}) {
      const double rate = load / std::max(1e-6, facts_.full_seconds);
      const double power = std::pow(10.0, std::floor(std::log10(rate)) - 1);
      rates.push_back(std::round(rate / power) * power);  // two digits
    }
    return rates;
  }

  /// KV of one copy of every document.
  int64_t pool_bytes() const { return documents_bytes(options_.num_documents); }

  /// KV of a prompt and its answer under every method: block holds each document twice.
  int64_t least_pool_bytes() const {
    return documents_bytes(2 * options_.documents_per_prompt) +
           (options_.question_len + options_.output_len + kTemplateTokens) *
               facts_.kv_bytes_per_token;
  }

 private:
  int64_t documents_bytes(int64_t count) const {
    const int64_t blocks = (options_.document_len + 15) / 16;
    return count * blocks * 16 * facts_.kv_bytes_per_token;
  }

  const SweepOptions& options_;
  SweepFacts facts_;
};

SweepFigure rate_figure(const Points& points, DocumentChoice choice) {
  const bool skewed = choice == DocumentChoice::kZipf;
  SweepFigure figure{
      .id = skewed ? "rate-skewed" : "rate-uniform",
      .title = skewed ? "Request rate, skewed popularity" : "Request rate, uniform popularity",
      .text = fmt::format(
          "{} documents, {} of them in a new order in each prompt, drawn {}. Requests come at "
          "random (a Poisson process) whether or not earlier ones are answered{}.{}",
          points.options().num_documents, points.options().documents_per_prompt,
          skewed ? fmt::format("by Zipf's law (exponent {})", points.options().zipf) : "evenly",
          skewed ? ", after others have filled the cache" : "", points.short_pool_text()),
      .x = {"request_rate", "requests per second", true},
      .charts = {kTtft, kThroughput, kHits, kPeakKv},
      .points = {}};
  for (const double rate : points.rates()) figure.points.push_back(points.open(rate, choice));
  if (!skewed) return figure;
  const int num_prompts = points.options().num_prompts;
  for (SweepPoint& point : figure.points) point.serve.num_warmups = num_prompts / 2;
  // The methods are ranked at the highest rate, so more requests average it.
  ServeOptions& ranked = std::ranges::max_element(figure.points, {}, &SweepPoint::x)->serve;
  ranked.num_prompts = std::max(ranked.num_prompts, 2 * num_prompts);
  return figure;
}

SweepFigure concurrency_figure(const Points& points) {
  SweepFigure figure{.id = "concurrency",
                     .title = "Throughput against concurrency",
                     .text = "Skewed popularity; the next request is sent when one is answered.",
                     .x = {"max_concurrency", "requests in flight", true},
                     .charts = {kRequests, kTtft, kPeakKv},
                     .points = {}};
  for (const int concurrency : {1, 4, 16}) {
    figure.points.push_back(points.closed(concurrency, DocumentChoice::kZipf, concurrency));
  }
  return figure;
}

SweepFigure kv_budget_figure(const Points& points) {
  SweepFigure figure{
      .id = "kv-budget",
      .title = "Hits against the memory for KV",
      .text =
          "The memory as a share of what one copy of every document takes, where it holds a prompt "
          "under every method; skewed popularity, 4 requests in flight. Methods that keep a copy "
          "per "
          "place or per prefix need more.",
      .x = {"kv_share", "KV memory over that of all documents", true},
      .charts = {kHits, kTtft},
      .points = {}};
  for (const double share : {0.5, 1.0, 2.0}) {
    SweepPoint point = points.closed(share, DocumentChoice::kZipf, 4);
    point.kv_cache_bytes = static_cast<int64_t>(share * static_cast<double>(points.pool_bytes()));
    if (point.kv_cache_bytes < points.least_pool_bytes()) continue;
    figure.points.push_back(point);
  }
  return figure;
}

SweepFigure shared_document_figure(const Points& points) {
  const int length = points.options().document_len * points.options().documents_per_prompt;
  SweepFigure figure{
      .id = "shared-document",
      .title = "One shared document",
      .text = fmt::format("Every request asks about the same document of {} tokens.", length),
      .x = {"max_concurrency", "requests in flight", true},
      .charts = {kTpot, kThroughput, kPeakKv},
      .points = {}};
  for (const int concurrency : {1, 4, 16}) {
    SweepPoint point = points.closed(concurrency, DocumentChoice::kUniform, concurrency);
    point.serve.workload.num_documents = 1;
    point.serve.workload.documents_per_prompt = 1;
    point.serve.workload.document_len = length;
    point.serve.workload.output_len = 2 * points.options().output_len;
    point.serve.num_warmups = 1;
    figure.points.push_back(point);
  }
  return figure;
}

/// Each document has been seen before, at another place.
SweepPoint seen_before(const Points& points, double x, int documents, int length) {
  SweepPoint point = points.closed(x, DocumentChoice::kUniform, 1);
  point.serve.workload.num_documents = documents;
  point.serve.workload.documents_per_prompt = documents;
  point.serve.workload.document_len = length;
  point.serve.num_warmups = 1;
  point.serve.num_prompts = std::max(4, points.options().num_prompts / 3);
  return point;
}

/// A prompt over documents that were all seen before, and where it stands on the x axis.
struct Context {
  double x = 0;
  int documents = 0;
  int length = 0;  // tokens of each
};

/// `figure` with its charts and points.
SweepFigure over_contexts(SweepFigure figure, const Points& points,
                          const std::vector<Context>& contexts) {
  figure.charts = {kTtft, kHits};
  for (const auto& [x, documents, length] : contexts) {
    figure.points.push_back(seen_before(points, x, documents, length));
  }
  return figure;
}

SweepFigure document_length_figure(const Points& points) {
  const int documents = points.options().documents_per_prompt;
  std::vector<Context> contexts;
  for (const double times : {0.25, 0.5, 1.0, 2.0}) {
    const int length = std::max(1, static_cast<int>(times * points.options().document_len));
    contexts.push_back({static_cast<double>(length), documents, length});
  }
  const std::string text = fmt::format(
      "One request at a time over the same {} documents, each time in a new order. The gap grows "
      "with the context.",
      documents);
  return over_contexts({.id = "document-length",
                        .title = "Length of the documents",
                        .text = text,
                        .x = {"document_len", "tokens of a document", true}},
                       points, contexts);
}

SweepFigure document_count_figure(const Points& points) {
  const int length = points.options().document_len;
  const std::string text = fmt::format(
      "One request at a time over documents of {} tokens, all of them seen before, each time in a "
      "new order.",
      length);
  return over_contexts({.id = "document-count",
                        .title = "Number of documents",
                        .text = text,
                        .x = {"documents_per_prompt", "documents in a prompt", true}},
                       points, {{1, 1, length}, {2, 2, length}, {5, 5, length}, {10, 10, length}});
}

SweepFigure decode_figure(const Points& points) {
  SweepFigure figure{
      .id = "decode",
      .title = "Decoding over documents",
      .text =
          "One request at a time: what a token of the answer costs behind more and more "
          "documents. Lazy turns the query for each of them, mepic turns their keys.",
      .x = {"context", "tokens of documents in the prompt"},
      .charts = {kTpot},
      .points = {}};
  for (const int count : {1, 5, 10}) {
    SweepPoint point = seen_before(points, count * points.options().document_len, count,
                                   points.options().document_len);
    point.serve.workload.output_len = 4 * points.options().output_len;
    point.serve.num_prompts = std::max(3, point.serve.num_prompts / 2);
    figure.points.push_back(point);
  }
  return figure;
}

struct NamedFigure {
  std::string_view name;
  SweepFigure (*make)(const Points& points);
};

constexpr NamedFigure kFigures[] = {
    {"rate-skewed",
     [](const Points& points) { return rate_figure(points, DocumentChoice::kZipf); }},
    {"rate-uniform",
     [](const Points& points) { return rate_figure(points, DocumentChoice::kUniform); }},
    {"concurrency", concurrency_figure},
    {"kv-budget", kv_budget_figure},
    {"shared-document", shared_document_figure},
    {"document-length", document_length_figure},
    {"document-count", document_count_figure},
    {"decode", decode_figure},
};

/// Tokens that a prompt and its answer may take, with room for what a template adds.
int64_t longest_request(const SweepPoint& point) {
  const WorkloadOptions& workload = point.serve.workload;
  return int64_t{workload.documents_per_prompt} * workload.document_len + workload.question_len +
         workload.output_len + kTemplateTokens;
}

/// Leaves out what the model does not take, and says so.
void drop_too_long(int64_t max_model_len, SweepFigure& figure) {
  const size_t removed = std::erase_if(figure.points, [&](const SweepPoint& point) {
    return longest_request(point) > max_model_len;
  });
  if (removed == 0) return;
  figure.text += fmt::format(" {} longer than the model's {} tokens {} left out.",
                             removed == 1 ? "One point" : fmt::format("{} points", removed),
                             max_model_len, removed == 1 ? "is" : "are");
}

}  // namespace

std::vector<std::string_view> sweep_figure_names() {
  std::vector<std::string_view> names;
  for (const NamedFigure& figure : kFigures) names.push_back(figure.name);
  return names;
}

SweepPoint single_request(const SweepOptions& options) {
  SweepPoint point = Points(options, {}).closed(1, DocumentChoice::kUniform, 1);
  point.serve.num_prompts = 4;
  return point;
}

Expected<std::vector<SweepFigure>> plan_sweep(const SweepOptions& options,
                                              const SweepFacts& facts) {
  const Points points(options, facts);
  for (const std::string& name : options.figures) {
    if (std::ranges::find(kFigures, name, &NamedFigure::name) == std::end(kFigures)) {
      return invalid_argument(fmt::format("\"{}\" is no figure; they are {}", name,
                                          fmt::join(sweep_figure_names(), ", ")));
    }
  }
  std::vector<SweepFigure> figures;
  for (const NamedFigure& named : kFigures) {
    if (!options.figures.empty() &&
        std::ranges::find(options.figures, named.name) == options.figures.end()) {
      continue;
    }
    SweepFigure figure = named.make(points);
    drop_too_long(facts.max_model_len, figure);
    if (figure.points.empty()) {
      return invalid_argument(
          fmt::format("the prompts of {} do not fit, into the model's {} tokens or, of kv-budget, "
                      "into twice the memory of all documents; use smaller --document-len or "
                      "--documents-per-prompt, or more --num-documents",
                      named.name, facts.max_model_len));
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace anyslot::bench

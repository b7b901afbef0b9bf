#include "metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

namespace anyslot::server {

namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

/// Seconds, from half a millisecond to five minutes.
prometheus::Histogram::BucketBoundaries time_buckets() {
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
          0.5,    1,     2.5,    5,     10,   30,    60,   120, 300};
}

prometheus::Histogram& add_histogram(prometheus::Registry& registry, const std::string& name,
                                     const std::string& help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({},
                                                                                   time_buckets());
}

/// One family of the engine's numbers.
class EngineFamily {
 public:
  EngineFamily(std::string name, std::string help, prometheus::MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }
  EngineFamily& add(int64_t value, const Labels& labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = labels;
    metric.counter.value = static_cast<double>(value);
    metric.gauge.value = static_cast<double>(value);
    family_.metric.push_back(std::move(metric));
    return *this;
  }
  prometheus::MetricFamily take() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

std::vector<prometheus::MetricFamily> engine_counters(const Stats& stats) {
  const auto counter = [](std::string name, std::string help) {
    return EngineFamily(std::move(name), std::move(help), prometheus::MetricType::Counter);
  };
  const int64_t text_computed = stats.prompt_tokens_total - stats.document_pool_tokens_total -
                                stats.document_joined_tokens_total -
                                stats.document_computed_tokens_total -
                                stats.text_cached_tokens_total;
  std::vector<prometheus::MetricFamily> families;
  families.push_back(
      counter("anyslot_prompt_tokens_total",
              "Prompt tokens by what they are and where their KV "
              "came from")
          .add(stats.document_pool_tokens_total, {{"kind", "document"}, {"source", "pool"}})
          .add(stats.document_joined_tokens_total, {{"kind", "document"}, {"source", "joined"}})
          .add(stats.document_computed_tokens_total, {{"kind", "document"}, {"source", "computed"}})
          .add(stats.text_cached_tokens_total, {{"kind", "text"}, {"source", "pool"}})
          .add(text_computed, {{"kind", "text"}, {"source", "computed"}})
          .take());
  families.push_back(counter("anyslot_document_hit_tokens_total",
                             "Tokens of documents that were cached when a request needed them")
                         .add(stats.document_pool_tokens_total)
                         .take());
  families.push_back(
      counter("anyslot_document_miss_tokens_total",
              "Tokens of documents that were not, joined encodings included")
          .add(stats.document_joined_tokens_total + stats.document_computed_tokens_total)
          .take());
  families.push_back(counter("anyslot_generated_tokens_total", "Tokens of answers")
                         .add(stats.generated_tokens_total)
                         .take());
  families.push_back(counter("anyslot_evictions_total", "Cache entries that went for room")
                         .add(stats.evictions_total)
                         .take());
  families.push_back(counter("anyslot_expirations_total", "Cache entries whose time to live ended")
                         .add(stats.expirations_total)
                         .take());
  families.push_back(counter("anyslot_preemptions_total", "Requests put back for want of blocks")
                         .add(stats.preemptions_total)
                         .take());
  families.push_back(
      counter("anyslot_steps_total", "Forward passes").add(stats.steps_total).take());
  return families;
}

std::vector<prometheus::MetricFamily> engine_gauges(const Stats& stats) {
  const auto gauge = [](std::string name, std::string help) {
    return EngineFamily(std::move(name), std::move(help), prometheus::MetricType::Gauge);
  };
  const int64_t in_use = stats.total_blocks - stats.free_blocks - stats.cached_blocks;
  std::vector<prometheus::MetricFamily> families;
  families.push_back(
      gauge("anyslot_running_requests", "Choices and registered documents in the batch")
          .add(stats.running_requests)
          .take());
  families.push_back(
      gauge("anyslot_waiting_requests", "Choices and registered documents that wait for the batch")
          .add(stats.waiting_requests)
          .take());
  families.push_back(gauge("anyslot_pool_blocks", "Blocks of the KV pool by state")
                         .add(stats.free_blocks, {{"state", "free"}})
                         .add(stats.cached_blocks, {{"state", "cached"}})
                         .add(in_use, {{"state", "in_use"}})
                         .take());
  families.push_back(
      gauge("anyslot_pinned_blocks", "Blocks of pinned documents").add(stats.pinned_blocks).take());
  families.push_back(gauge("anyslot_cached_documents", "Documents in the cache, preambles included")
                         .add(stats.document_entries)
                         .take());
  return families;
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kError:
      return "error";
    case Outcome::kAborted:
      return "aborted";
  }
  return "";
}

}  // namespace

struct Metrics::Families {
  explicit Families(const Engine& served)
      : engine(served),
        first_token(add_histogram(registry, "anyslot_time_to_first_token_seconds",
                                  "From the arrival of a request to its first token")),
        inter_token(add_histogram(registry, "anyslot_inter_token_seconds",
                                  "Between two tokens of one answer")),
        queue(add_histogram(registry, "anyslot_queue_seconds",
                            "From the submission of a request to its first step")),
        request(add_histogram(registry, "anyslot_request_seconds",
                              "From the arrival of a request to the end of its answer")),
        outcomes(prometheus::BuildCounter()
                     .Name("anyslot_requests_total")
                     .Help("Requests for answers, by how they ended")
                     .Register(registry)),
        replies(prometheus::BuildCounter()
                    .Name("anyslot_http_replies_total")
                    .Help("HTTP answers by status")
                    .Register(registry)) {
    for (const Outcome outcome : {Outcome::kOk, Outcome::kError, Outcome::kAborted}) {
      outcomes.Add({{"outcome", outcome_name(outcome)}});
    }
  }

  const Engine& engine;
  prometheus::Registry registry;
  prometheus::Histogram& first_token;
  prometheus::Histogram& inter_token;
  prometheus::Histogram& queue;
  prometheus::Histogram& request;
  prometheus::Family<prometheus::Counter>& outcomes;
  prometheus::Family<prometheus::Counter>& replies;
};

Metrics::Metrics(const Engine& engine) : families_(std::make_unique<Families>(engine)) {}
Metrics::~Metrics() = default;

void Metrics::observe_first_token(double seconds) { families_->first_token.Observe(seconds); }
void Metrics::observe_inter_token(double seconds) { families_->inter_token.Observe(seconds); }
void Metrics::observe_queue(double seconds) { families_->queue.Observe(seconds); }
void Metrics::observe_request(double seconds) { families_->request.Observe(seconds); }

void Metrics::count_request(Outcome outcome) {
  families_->outcomes.Add({{"outcome", outcome_name(outcome)}}).Increment();
}

void Metrics::count_reply(int status) {
  families_->replies.Add({{"status", std::to_string(status)}}).Increment();
}

std::string Metrics::text() const {
  std::vector<prometheus::MetricFamily> families = families_->registry.Collect();
  const Stats stats = families_->engine.stats();
  for (auto more : {engine_counters(stats), engine_gauges(stats)}) {
    families.insert(families.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace anyslot::server

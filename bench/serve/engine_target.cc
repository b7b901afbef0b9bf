#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <mutex>
#include <utility>

#include "base/block.h"
#include "cli/sizes.h"
#include "target.h"

namespace anyslot::bench {

namespace {

namespace asio = boost::asio;

Segment segment_of(SegmentKind kind, const std::string& text, const std::vector<int32_t>& ids,
                   const std::string& id) {
  Segment segment;
  segment.kind = kind;
  segment.text = ids.empty() ? text : "";
  segment.token_ids = ids;
  segment.id = id;
  return segment;
}

/// For models without a template: documents, then the texts as they are.
std::vector<Segment> plain_segments(const WorkloadRequest& request) {
  std::vector<Segment> segments;
  for (const WorkloadDocument& document : request.documents) {
    segments.push_back(
        segment_of(SegmentKind::kDocument, document.text + "\n", document.token_ids, document.id));
  }
  for (const WorkloadMessage& message : request.messages) {
    segments.push_back(
        segment_of(SegmentKind::kText, message.content + "\n", message.token_ids, ""));
  }
  return segments;
}

Expected<std::vector<Segment>> segments_of(const Engine& engine, const WorkloadRequest& request) {
  const ModelInfo& model = engine.model();
  if (!model.has_rag_template && !model.has_chat_template) return plain_segments(request);
  std::vector<Document> documents;
  for (const WorkloadDocument& document : request.documents) {
    documents.push_back({document.title, document.text, document.id});
  }
  if (model.has_rag_template && !documents.empty() && request.messages.size() == 1) {
    return engine.render_rag(documents, request.messages.front().content);
  }
  std::vector<ChatMessage> messages;
  for (const WorkloadMessage& message : request.messages) {
    messages.push_back({message.role, message.content, {}});
  }
  return engine.render_chat(messages, documents);
}

/// What the loop's thread and the submitting thread share of one request.
class EngineFlightState : public std::enable_shared_from_this<EngineFlightState> {
 public:
  EngineFlightState(asio::io_context& loop, Target::Handler handler,
                    std::function<void()> sample_kv)
      : loop_(loop), handler_(std::move(handler)), sample_kv_(std::move(sample_kv)) {}

  /// On a submitting thread.
  void submit(Engine& engine, const WorkloadRequest& work, std::optional<Method> method,
              const std::string& cache_salt) {
    if (is_gone()) return;
    submitted_ = Clock::now();
    Expected<Stream> stream = try_submit(engine, work, method, cache_salt);
    const Status status = stream.status();
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    if (stream) stream_.emplace(*std::move(stream));
    asio::post(loop_, [weak = weak_from_this(), status] {
      if (const auto self = weak.lock()) self->begin(status);
    });
  }

  /// On the loop's thread: nothing is handled any more, and the loop may end.
  void leave() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (stream_) stream_->on_ready({});
    stream_.reset();
  }

 private:
  bool is_gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }

  static Expected<Stream> try_submit(Engine& engine, const WorkloadRequest& work,
                                     std::optional<Method> method, const std::string& cache_salt) {
    try {
      Expected<std::vector<Segment>> segments = segments_of(engine, work);
      if (!segments) return segments.status();
      Request request;
      request.segments = *std::move(segments);
      request.sampling.max_tokens = work.max_tokens;
      request.sampling.ignore_eos = work.ignore_eos;
      request.method = method;
      request.cache_salt = cache_salt;
      return engine.submit(request);
    } catch (const std::exception& error) {  // out of memory, on a thread where nobody catches it
      return internal_error(error.what());
    }
  }

  void begin(const Status& status) {
    if (gone_) return;
    if (!status.ok()) {
      TargetEvent event;
      event.at = Clock::now();
      event.last = true;
      event.failure = Failure::kRefused;
      event.error = status.message();
      return handler_(std::move(event));
    }
    stream_->on_ready([&loop = loop_, weak = weak_from_this()] {
      asio::post(loop, [weak] {
        if (const auto self = weak.lock()) self->drain();
      });
    });
  }

  void drain() {
    while (!gone_) {
      const std::optional<Event> event = stream_->try_next();
      if (!event) return;
      sample_kv_();
      handler_(translated(*event));
      if (event->last) return;
    }
  }

  TargetEvent translated(const Event& event) const {
    TargetEvent result;
    result.at = submitted_ + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double, std::milli>(event.at_ms));
    result.is_output = !event.token_ids.empty();
    result.text = event.text;
    result.last = event.last;
    if (!event.last) return result;
    result.prompt_tokens = event.usage.prompt_tokens;
    result.cached_tokens = event.usage.cached_tokens;
    result.output_tokens = event.usage.completion_tokens;
    result.documents = event.usage.documents;
    if (event.finish_reason == FinishReason::kError) {
      result.failure = Failure::kError;
      result.error = event.error;
    } else if (event.finish_reason == FinishReason::kCancelled) {
      result.failure = Failure::kCancelled;
      result.error = "the engine cancelled the request";
    }
    return result;
  }

  asio::io_context& loop_;
  Target::Handler handler_;
  std::function<void()> sample_kv_;
  std::mutex mutex_;  // of what follows, until the stream is there
  bool gone_ = false;
  std::optional<Stream> stream_;
  Clock::time_point submitted_;
};

class EngineFlight : public Flight {
 public:
  explicit EngineFlight(std::shared_ptr<EngineFlightState> state) : state_(std::move(state)) {}
  EngineFlight(const EngineFlight&) = delete;
  EngineFlight& operator=(const EngineFlight&) = delete;
  ~EngineFlight() override { state_->leave(); }

 private:
  std::shared_ptr<EngineFlightState> state_;
};

class EngineTarget : public Target {
 public:
  EngineTarget(Engine& engine, std::optional<Method> method, std::string cache_salt)
      : engine_(engine), method_(method), cache_salt_(std::move(cache_salt)) {}
  EngineTarget(std::unique_ptr<Engine> engine, std::optional<Method> method)
      : owned_(std::move(engine)), engine_(*owned_), method_(method) {}
  EngineTarget(const EngineTarget&) = delete;
  EngineTarget& operator=(const EngineTarget&) = delete;
  ~EngineTarget() override { submitters_.join(); }

  std::string model_id() const override { return engine_.model().name; }

  Report::Facts facts() const override {
    const ModelInfo& model = engine_.model();
    const int64_t block_bytes = kBlockSize * model.kv_bytes_per_token;
    return {{"target", "the engine in process"},
            {"model", fmt::format("{}, {:.1f} million parameters", model.name,
                                  static_cast<double>(model.num_parameters) / 1e6)},
            {"backend", model.backend},
            {"KV pool",
             fmt::format("{} blocks of {} tokens, {}", engine_.stats().total_blocks, kBlockSize,
                         cli::format_size(engine_.stats().total_blocks * block_bytes))}};
  }

  Expected<TextTraits> text_traits() override {
    const ModelInfo& model = engine_.model();
    TextTraits traits;
    traits.vocab_size = model.vocab_size;
    traits.takes_text = model.has_tokenizer;
    if (!model.has_tokenizer) return traits;
    constexpr size_t kSample = 2000;
    const Expected<std::vector<int32_t>> tokens = engine_.tokenize(workload_words(kSample, 0), {});
    if (!tokens) return tokens.status();
    traits.tokens_per_word = static_cast<double>(tokens->size()) / kSample;
    return traits;
  }

  std::unique_ptr<Flight> start(asio::io_context& loop, const WorkloadRequest& request,
                                Handler handler) override {
    auto state =
        std::make_shared<EngineFlightState>(loop, std::move(handler), [this] { sample_kv(); });
    asio::post(submitters_,
               [this, state, request] { state->submit(engine_, request, method_, cache_salt_); });
    return std::make_unique<EngineFlight>(std::move(state));
  }

  TargetCounters counters() override {
    const Stats stats = engine_.stats();
    return {.prompt_tokens = stats.prompt_tokens_total,
            .cached_tokens = stats.cached_tokens_total,
            .joined_tokens = stats.document_joined_tokens_total,
            .kv_tokens_read = stats.kv_tokens_read_total,
            .blocks_copied = stats.blocks_copied_total,
            .evictions = stats.evictions_total,
            .preemptions = stats.preemptions_total};
  }

  void watch_kv(asio::io_context& /*loop*/) override { peak_ = PeakKv{}; }

  std::optional<PeakKv> peak_kv() override { return std::exchange(peak_, std::nullopt); }

 private:
  void sample_kv() {
    if (!peak_) return;
    const Stats stats = engine_.stats();
    const int64_t occupied = stats.total_blocks - stats.free_blocks;
    peak_->blocks_occupied = std::max(peak_->blocks_occupied, occupied);
    peak_->blocks_in_use = std::max(peak_->blocks_in_use, occupied - stats.cached_blocks);
    peak_->total_blocks = stats.total_blocks;
    peak_->bytes_per_block = kBlockSize * engine_.model().kv_bytes_per_token;
  }

  std::unique_ptr<Engine> owned_;
  Engine& engine_;
  std::optional<Method> method_;
  std::string cache_salt_;
  std::optional<PeakKv> peak_;       // while it is watched
  asio::thread_pool submitters_{2};  // tokenizing would hold the loop up
};

}  // namespace

Expected<std::unique_ptr<Target>> open_engine_target(const EngineConfig& config) {
  Expected<Engine> engine = Engine::open(config);
  if (!engine) return engine.status();
  return std::unique_ptr<Target>(
      std::make_unique<EngineTarget>(std::make_unique<Engine>(*std::move(engine)), config.method));
}

std::unique_ptr<Target> engine_target(Engine& engine, std::optional<Method> method,
                                      const std::string& cache_salt) {
  return std::make_unique<EngineTarget>(engine, method, cache_salt);
}

}  // namespace anyslot::bench

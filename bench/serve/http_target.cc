#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "http_stream.h"
#include "openai_client.h"
#include "target.h"

namespace anyslot::bench {

namespace {

namespace asio = boost::asio;
using nlohmann::json;

/// A streamed answer.
class HttpFlight : public Flight {
 public:
  HttpFlight(asio::io_context& loop, const HttpAddress& address, const HttpCall& call,
             Target::Handler handler)
      : handler_(std::move(handler)),
        stream_(std::make_shared<HttpStream>(
            loop, address, call,
            HttpStream::Listener{
                [this](unsigned status, std::string_view type) { take_head(status, type); },
                [this](std::string_view bytes) { take_body(bytes); },
                [this](HttpEnd end, const std::string& why) { take_end(end, why); }})) {
    stream_->begin();
  }
  HttpFlight(const HttpFlight&) = delete;
  HttpFlight& operator=(const HttpFlight&) = delete;
  ~HttpFlight() override { stream_->cancel(); }

 private:
  void take_head(unsigned status, std::string_view type) {
    status_ = status;
    is_stream_ = status == 200 && type.starts_with("text/event-stream");
  }

  void take_body(std::string_view bytes) {
    if (!is_stream_) {
      constexpr size_t kMost = 1 << 16;  // of an error's text
      body_ += bytes.substr(0, kMost - std::min(kMost, body_.size()));
      return;
    }
    for (const std::string& data : parser_.feed(bytes)) {
      if (told_) return;
      if (data == "[DONE]")
        return finish(finished_ ? Failure::kNone : Failure::kClosed,
                      "[DONE] came before the answer had a finish_reason");
      take_chunk(parse_chunk(data));
    }
  }

  void take_chunk(const AnswerChunk& chunk) {
    if (!chunk.error.empty()) return finish(Failure::kError, chunk.error);
    finished_ = finished_ || chunk.finished;
    if (chunk.prompt_tokens) prompt_tokens_ = *chunk.prompt_tokens;
    if (chunk.output_tokens) output_tokens_ = *chunk.output_tokens;
    if (chunk.cached_tokens) cached_tokens_ = chunk.cached_tokens;
    if (!chunk.documents.empty()) documents_ = chunk.documents;
    if (!chunk.is_output) return;
    TargetEvent event;
    event.at = Clock::now();
    event.is_output = true;
    event.text = chunk.text;
    handler_(std::move(event));
  }

  void take_end(HttpEnd end, const std::string& why) {
    if (told_) return;
    if (end == HttpEnd::kNoConnection) return finish(Failure::kConnect, why);
    if (status_ != 0 && status_ != 200) {
      return finish(Failure::kRefused, fmt::format("status {}: {}", status_, error_message(body_)));
    }
    if (end == HttpEnd::kWhole && !is_stream_) {
      return finish(Failure::kError, "the answer is no stream of events");
    }
    // Some servers end without [DONE].
    if (finished_ && end == HttpEnd::kWhole) return finish(Failure::kNone, "");
    finish(Failure::kClosed,
           fmt::format("the stream ended before the answer{}{}", why.empty() ? "" : ": ", why));
  }

  void finish(Failure failure, const std::string& error) {
    if (std::exchange(told_, true)) return;
    stream_->cancel();
    TargetEvent event;
    event.at = Clock::now();
    event.last = true;
    event.failure = failure;
    if (failure != Failure::kNone) event.error = error;
    event.prompt_tokens = prompt_tokens_;
    event.cached_tokens = cached_tokens_;
    event.output_tokens = output_tokens_;
    event.documents = documents_;
    handler_(std::move(event));
  }

  Target::Handler handler_;
  std::shared_ptr<HttpStream> stream_;
  EventParser parser_;
  unsigned status_ = 0;
  bool is_stream_ = false;
  bool finished_ = false;
  bool told_ = false;  // the last event was handed on
  std::string body_;   // of what is no stream
  int64_t prompt_tokens_ = 0;
  int64_t output_tokens_ = 0;
  std::optional<int64_t> cached_tokens_;
  std::vector<DocumentUsage> documents_;
};

/// Asks /metrics for the pool's blocks, again and again.
class KvWatch {
 public:
  KvWatch(asio::io_context& loop, const HttpAddress& address, HttpCall call)
      : loop_(loop), address_(address), call_(std::move(call)), timer_(loop) {
    ask();
  }
  KvWatch(const KvWatch&) = delete;
  KvWatch& operator=(const KvWatch&) = delete;
  ~KvWatch() { stream_->cancel(); }

  std::optional<PeakKv> peak() const { return peak_; }

 private:
  void ask() {
    text_.clear();
    stream_ = std::make_shared<HttpStream>(
        loop_, address_, call_,
        HttpStream::Listener{[](unsigned, std::string_view) {},
                             [this](std::string_view bytes) { text_ += bytes; },
                             [this](HttpEnd, const std::string&) {
                               if (take()) ask_later();
                             }});
    stream_->begin();
  }

  /// False when the server has no such metrics.
  bool take() {
    const auto blocks = [&](std::string_view state) {
      return metric_sum(text_, "anyslot_pool_blocks", state);
    };
    const auto in_use = blocks("\"in_use\"");
    const auto cached = blocks("\"cached\"");
    const auto free = blocks("\"free\"");
    if (!in_use || !cached || !free) return false;
    PeakKv peak = peak_.value_or(PeakKv{});
    peak.blocks_in_use = std::max(peak.blocks_in_use, *in_use);
    peak.blocks_occupied = std::max(peak.blocks_occupied, *in_use + *cached);
    peak.total_blocks = *in_use + *cached + *free;
    peak_ = peak;
    return true;
  }

  void ask_later() {
    constexpr std::chrono::milliseconds kInterval{250};
    timer_.expires_after(kInterval);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) ask();
    });
  }

  asio::io_context& loop_;
  const HttpAddress& address_;
  HttpCall call_;
  asio::steady_timer timer_;
  std::shared_ptr<HttpStream> stream_;
  std::string text_;
  std::optional<PeakKv> peak_;
};

class HttpTarget : public Target {
 public:
  HttpTarget(HttpTargetOptions options, HttpAddress address)
      : options_(std::move(options)), address_(std::move(address)) {}

  std::string model_id() const override { return options_.model; }

  Report::Facts facts() const override {
    return {{"target", options_.base_url + ", " + options_.endpoint},
            {"model", options_.model},
            {"documents", options_.documents_as_field ? "in a field of their own"
                                                      : "in the text of the prompt"}};
  }

  Expected<TextTraits> text_traits() override {
    constexpr size_t kSample = 2000;
    const std::string words = workload_words(kSample, 0);
    TextTraits traits;
    for (const json& body : {json{{"model", options_.model}, {"prompt", words}},
                             json{{"content", words}}}) {  // vLLM's form and llama.cpp's
      const Expected<HttpReply> reply =
          call_and_wait(address_, call("POST", "/tokenize", body.dump()), options_.timeout_seconds);
      if (!reply) return reply.status();
      const json answer = json::parse(reply->body, nullptr, false);
      if (reply->status != 200 || !answer.is_object() || !answer.contains("tokens")) continue;
      if (answer["tokens"].empty())
        continue;  // a form that the server does not know is no text to it
      traits.tokens_per_word = static_cast<double>(answer["tokens"].size()) / kSample;
      break;
    }
    return traits;
  }

  std::unique_ptr<Flight> start(asio::io_context& loop, const WorkloadRequest& request,
                                Handler handler) override {
    return std::make_unique<HttpFlight>(
        loop, address_, call("POST", options_.endpoint, request_body(options_, request)),
        std::move(handler));
  }

  TargetCounters counters() override {
    TargetCounters counters;
    const Expected<HttpReply> reply =
        call_and_wait(address_, call("GET", "/metrics", ""), options_.timeout_seconds);
    if (!reply || reply->status != 200) return counters;
    const std::string& text = reply->body;
    const auto sum = [&](std::string_view name, std::string_view label = "") {
      return metric_sum(text, name, label);
    };
    constexpr std::string_view kPrompt = "anyslot_prompt_tokens_total";
    if (const auto prompt = sum(kPrompt)) {
      counters.prompt_tokens = prompt;
      counters.cached_tokens = sum(kPrompt, "source=\"pool\"");
      counters.joined_tokens = sum(kPrompt, "source=\"joined\"");
      counters.evictions = sum("anyslot_evictions_total");
      counters.preemptions = sum("anyslot_preemptions_total");
    } else if (const auto queries = sum("vllm:prefix_cache_queries_total")) {
      counters.prompt_tokens = queries;
      counters.cached_tokens = sum("vllm:prefix_cache_hits_total");
      counters.preemptions = sum("vllm:num_preemptions_total");
    }
    return counters;
  }

  void watch_kv(asio::io_context& loop) override {
    watch_ = std::make_unique<KvWatch>(loop, address_, call("GET", "/metrics", ""));
  }

  std::optional<PeakKv> peak_kv() override {
    const auto watch = std::exchange(watch_, nullptr);
    return watch ? watch->peak() : std::nullopt;
  }

 private:
  HttpCall call(const std::string& method, const std::string& target, std::string body) const {
    HttpCall call;
    call.method = method;
    call.target = target;
    call.body = std::move(body);
    call.api_key = options_.api_key;
    call.connect_seconds = options_.timeout_seconds;
    return call;
  }

  HttpTargetOptions options_;
  HttpAddress address_;
  std::unique_ptr<KvWatch> watch_;
};

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The models of an answer of /v1/models.
std::vector<HttpModel> models_of(const json& answer) {
  std::vector<HttpModel> models;
  if (!answer.is_object() || !answer.contains("data") || !answer["data"].is_array()) return models;
  for (const json& entry : answer["data"]) {
    if (!entry.is_object()) continue;
    HttpModel model{text_at(entry, "id"), text_at(entry, "owned_by")};
    if (!model.id.empty()) models.push_back(std::move(model));
  }
  return models;
}

Expected<HttpModel> find_model(const HttpAddress& address, const HttpTargetOptions& options) {
  HttpCall call;
  call.target = "/v1/models";
  call.api_key = options.api_key;
  const Expected<HttpReply> reply = call_and_wait(address, call, options.timeout_seconds);
  if (!reply) return reply.status();
  if (reply->status != 200) {
    return failed_precondition(fmt::format("{}/v1/models answered with status {}: {}",
                                           options.base_url, reply->status,
                                           error_message(reply->body)));
  }
  const std::vector<HttpModel> models = models_of(json::parse(reply->body, nullptr, false));
  if (models.empty()) {
    return failed_precondition(
        fmt::format("{}/v1/models names no model; name it with --model", options.base_url));
  }
  const auto named = std::ranges::find(models, options.model, &HttpModel::id);
  return named == models.end() ? models.front() : *named;
}

}  // namespace

Expected<HttpModel> find_http_model(const HttpTargetOptions& options) {
  const Expected<HttpAddress> address = resolve_address(options.base_url);
  if (!address) return address.status();
  return find_model(*address, options);
}

Expected<std::unique_ptr<Target>> open_http_target(const HttpTargetOptions& options) {
  Expected<HttpAddress> address = resolve_address(options.base_url);
  if (!address) return address.status();
  HttpTargetOptions named = options;
  if (named.model.empty()) {
    Expected<HttpModel> model = find_model(*address, options);
    if (!model) return model.status();
    named.model = std::move(model->id);
  }
  return std::unique_ptr<Target>(
      std::make_unique<HttpTarget>(std::move(named), *std::move(address)));
}

}  // namespace anyslot::bench

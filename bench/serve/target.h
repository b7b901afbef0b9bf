#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/engine.h"
#include "bench/report.h"
#include "metrics.h"
#include "workload.h"

namespace boost::asio {
class io_context;
}

namespace anyslot::bench {

using Clock = std::chrono::steady_clock;

/// A piece of an answer, or its end.
struct TargetEvent {
  Clock::time_point at;    // when the target had it, or when it came
  bool is_output = false;  // a token or several, perhaps without text
  std::string text;
  bool last = false;                 // nothing follows
  Failure failure = Failure::kNone;  // with `last`
  std::string error;
  int64_t prompt_tokens = 0;  // these with `last`, as far as the target tells
  std::optional<int64_t> cached_tokens;
  int64_t output_tokens = 0;             // 0: unknown
  std::vector<DocumentUsage> documents;  // in prompt order; empty: the target does not tell
};

/// A request in flight; destroying it cancels it, after which its handler is not called any more.
class Flight {
 public:
  virtual ~Flight() = default;
};

/// What is measured. All calls come from one thread, that which runs the loop.
class Target {
 public:
  using Handler = std::function<void(TargetEvent)>;

  virtual ~Target() = default;

  /// The model's name.
  virtual std::string model_id() const = 0;
  /// What a report says of it.
  virtual Report::Facts facts() const = 0;
  virtual Expected<TextTraits> text_traits() = 0;
  /// Sends a request whose `messages` are complete. `handler` is called from `loop`, never from
  /// within this call, until an event is the last.
  virtual std::unique_ptr<Flight> start(boost::asio::io_context& loop,
                                        const WorkloadRequest& request, Handler handler) = 0;
  /// What it has counted so far. Waits for the answer.
  virtual TargetCounters counters() = 0;
  /// Watches how full the KV pool is from now on; for HTTP, by asking once in a while.
  virtual void watch_kv(boost::asio::io_context& loop) = 0;
  /// Ends watching. None when the target does not tell.
  virtual std::optional<PeakKv> peak_kv() = 0;
};

/// The engine in process, with a cache of its own. `config.method` is the method that is measured.
/// Fails as Engine::open does.
Expected<std::unique_ptr<Target>> open_engine_target(const EngineConfig& config);
/// The same over an engine that is open, which must outlive the target.
std::unique_ptr<Target> engine_target(Engine& engine, std::optional<Method> method,
                                      const std::string& cache_salt);

struct HttpTargetOptions {
  std::string base_url;  // "http://host:port", with a path or without
  std::string model;     // empty: the first that /v1/models names
  std::string api_key;
  std::string endpoint = "/v1/chat/completions";  // or /v1/completions
  bool documents_as_field = true;  // else written into the prompt's text, before the question
  std::optional<Method> method;    // sent as "method", which our server knows
  std::string cache_salt;          // sent as "cache_salt" when not empty
  double timeout_seconds = 300;    // of counters and of connecting
};

/// A model that a server serves.
struct HttpModel {
  std::string id;
  std::string owner;  // what the server gives as "owned_by"; empty: nothing

  /// Whether the server is ours, which takes documents, methods and salts as fields.
  bool is_ours() const { return owner == "anyslot"; }
};

/// Of the models that /v1/models names, that of `options.model`, or the first one when that is
/// empty or not among them. Fails as open_http_target.
Expected<HttpModel> find_http_model(const HttpTargetOptions& options);

/// Any server of OpenAI's API. Fails with kInvalidArgument for a URL that is none, and with
/// kFailedPrecondition when the server does not name its models and none was given.
Expected<std::unique_ptr<Target>> open_http_target(const HttpTargetOptions& options);

}  // namespace anyslot::bench

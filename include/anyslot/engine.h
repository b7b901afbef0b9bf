#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/request.h"
#include "anyslot/result.h"
#include "anyslot/status.h"

namespace anyslot {

namespace internal {
class EngineCore;
struct StreamState;
}  // namespace internal

/// The events of one request. Destroying an unfinished stream cancels its request.
class Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for the next event. After the last event, only that one is returned again, without its
  /// tokens and text.
  Event next();
  /// Asks the engine to stop; choices that have not ended then end with FinishReason::kCancelled.
  /// Safe from any thread.
  void cancel();

 private:
  friend class Engine;
  explicit Stream(std::shared_ptr<internal::StreamState> state);
  std::shared_ptr<internal::StreamState> state_;
};

struct ModelInfo {
  std::string name;          // of the folder; with random weights, of the config file
  std::string architecture;  // config.json's architectures[0]
  std::string backend;       // one line for people: device, kernels, libraries, threads
  int64_t num_parameters = 0;
  int64_t vocab_size = 0;
  int64_t max_model_len = 0;
  int64_t kv_bytes_per_token = 0;  // all layers
  bool has_tokenizer = false;
  bool has_rag_template = false;
  bool block_trained = false;
  Method default_method = Method::kPrefix;
};

/// A document of a RAG prompt. With a title it goes through the template; a bare text stands as it
/// is.
struct Document {
  std::optional<std::string> title;
  std::string text;
  std::string id;
};

/// An engine owns a model, its KV pool and one thread that runs the steps. All calls are
/// thread-safe.
class Engine {
 public:
  /// Fails with kNotFound or kFailedPrecondition for an unusable model, kInvalidArgument for bad
  /// options, kResourceExhausted when memory does not suffice.
  static Expected<Engine> open(const EngineConfig& config);

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  /// Cancels what is running and joins the engine thread.
  ~Engine();

  /// Tokenizes on the calling thread and queues the request. Fails at once for what can never be
  /// served: too long for the model, more blocks than the pool has, a document at the end.
  Expected<Stream> submit(const Request& request);

  /// Renders documents and a question through the model's rag_template.json into segments:
  /// preamble, documents, question.
  Expected<std::vector<Segment>> render_rag(const std::vector<Document>& documents,
                                            const std::string& question) const;

  /// Token ids of a text that stands alone (special tokens match only inside `markup`).
  Expected<std::vector<int32_t>> tokenize(const std::string& text,
                                          const std::vector<ByteRange>& markup) const;
  std::string detokenize(const std::vector<int32_t>& token_ids) const;
  /// What one token stands for: its bytes, perhaps a part of a character, or the name of a special
  /// token. Empty without a tokenizer and for ids that it does not have.
  std::string token_bytes(int32_t token_id) const;

  const ModelInfo& model() const;
  Stats stats() const;
  /// Proves that every block is free, cached, or owned exactly as counted. For tests and debugging.
  Status check_integrity() const;

  /// A function that completes the trace (EngineConfig::trace_path), if there is one; what comes
  /// later is not traced. It may be called from any thread, before and after the engine's end, and
  /// fails with kInternal when the file could not be written whole.
  std::function<Status()> trace_finisher() const;

 private:
  friend struct EngineTestAccess;
  explicit Engine(std::unique_ptr<internal::EngineCore> core);
  std::unique_ptr<internal::EngineCore> core_;
};

}  // namespace anyslot

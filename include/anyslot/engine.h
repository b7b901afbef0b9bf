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
  /// The next event if it is there, without waiting. None any more after the last event.
  std::optional<Event> try_next();
  /// Calls `ready` once when there is an event for try_next(), at once if there is one already; and
  /// again after each try_next() that found none, from the engine thread. It must return quickly
  /// and must call neither the engine nor the stream. If it throws there, the stream is cancelled.
  /// When this returns, or the
  /// stream is gone, what was given before is not called any more. Like next(), not for several
  /// threads at once.
  void on_ready(std::function<void()> ready);
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
  bool has_chat_template = false;  // one that this build can render
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

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant };

/// A message of a conversation. Documents of a user's message stand before it.
struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;
  std::vector<Document> documents;
  std::string name = {};  // what errors call it; empty: "messages[INDEX]"
};

/// Which requests a registered document is for.
struct DocumentOptions {
  /// One that encodes documents alone: lazy and block share what they keep, mepic has its own.
  std::optional<Method> method;  // unset: the engine's default
  std::string cache_salt;
  std::string tenant = {};  // see Request
};

/// A document in the cache.
struct CachedDocument {
  std::string key;  // hexadecimal digest, the same for the same tokens, method and salt
  std::string id;   // as it was given last; empty: none
  int64_t tokens = 0;
  int64_t bytes = 0;  // of KV
  int64_t hits = 0;   // requests that found it ready
  double age_seconds = 0;
  bool encoding = false;  // not usable yet
  bool pinned = false;
  std::optional<double> ttl_left_seconds;  // does not run down while it is in use or pinned
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
  /// served: kOutOfRange for what is too long for the model or needs more blocks than the pool has,
  /// kInvalidArgument and kFailedPrecondition for the rest; Status::field tells what of it is
  /// wrong.
  Expected<Stream> submit(const Request& request);

  /// Encodes a document ahead of its use, unless it is cached already, and waits for it; requests
  /// that need it meanwhile join. Pins it and sets its time to live as the segment says. Fails with
  /// kInvalidArgument for segments that are no documents and methods that keep none, with
  /// kOutOfRange when it is too long, with kResourceExhausted when pinned documents leave no room
  /// or it cannot be pinned.
  Expected<CachedDocument> register_document(const Segment& document,
                                             const DocumentOptions& options);
  /// The same without waiting: `done` is called once, on the calling thread for what fails at once,
  /// else on the engine's. It must return quickly and must not call the engine; what it throws
  /// there is dropped.
  /// Returns a function that gives the registration up: unless it has ended, it ends with
  /// kCancelled, and a document that nobody else waits for is encoded no further. That may be
  /// called from any thread at any time, also when the engine is gone.
  std::function<void()> register_document(const Segment& document, const DocumentOptions& options,
                                          std::function<void(Expected<CachedDocument>)> done);
  /// The documents that are cached under a salt, whoever gave them, the latest used first; no
  /// others can be seen. This and the calls below wait for the end of the current step; they fail
  /// with kUnavailable when the engine is shutting down.
  Expected<std::vector<CachedDocument>> documents(const std::string& cache_salt) const;
  /// Each fails with kNotFound for a key that is not cached under the salt. Pinning what is pinned,
  /// and unpinning what is not, changes nothing. Removing fails with kFailedPrecondition for a
  /// pinned document; it is cold from then on, and its memory is free when those who use it end.
  Status pin_document(const std::string& key, const std::string& cache_salt);
  Status unpin_document(const std::string& key, const std::string& cache_salt);
  Status remove_document(const std::string& key, const std::string& cache_salt);

  /// Renders documents and a question through the model's rag_template.json into segments:
  /// preamble, documents, question.
  Expected<std::vector<Segment>> render_rag(const std::vector<Document>& documents,
                                            const std::string& question) const;

  /// Renders a conversation, and documents that stand before its first question, into segments:
  /// through the model's rag_template.json or else its chat template. Fails with kInvalidArgument
  /// for a conversation or documents that the template cannot place, with kFailedPrecondition when
  /// the model has no template.
  Expected<std::vector<Segment>> render_chat(const std::vector<ChatMessage>& messages,
                                             const std::vector<Document>& documents) const;

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

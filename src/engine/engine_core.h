#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "anyslot/engine.h"
#include "engine/command_queue.h"
#include "engine/engine_parts.h"
#include "engine/step_loop.h"
#include "text/token_memo.h"

namespace anyslot::internal {

/// An open engine: its parts, its thread, and the way in.
class EngineCore {
 public:
  explicit EngineCore(EngineParts parts);
  ~EngineCore();
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  Expected<std::shared_ptr<StreamState>> submit(const Request& request);
  /// See Engine.
  std::function<void()> register_document(const Segment& document, const DocumentOptions& options,
                                          std::function<void(Expected<CachedDocument>)> done);
  /// Runs `call` between two steps on the engine thread, waits for it and returns what it did:
  /// kInternal or kResourceExhausted when it threw, which disturbs nobody else; kUnavailable when
  /// the engine is shutting down, and it did not run.
  Status call(const std::function<Status(StepLoop&)>& call);

  /// Ends the engine's thread after the current step; from any thread. What is asked of the engine
  /// then fails with kUnavailable.
  void close() { commands_->close(); }

  const EngineParts& parts() const { return parts_; }
  KvStorage& storage() { return *parts_.storage; }
  Stats stats() const { return loop_.stats(); }

 private:
  EngineParts parts_;
  TokenMemo memo_;
  std::shared_ptr<CommandQueue> commands_;
  StepLoop loop_;
  std::mutex submit_mutex_;  // ids reach the queue in ascending order
  uint64_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace anyslot::internal

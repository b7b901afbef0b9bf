#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "answer_format.h"
#include "anyslot/engine.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// One request for an answer, from its arrival to the end: parsed and tokenized by a worker, then
/// moved from the engine's stream to the client on the I/O thread. Its task owns it, then the
/// stream that it reads; when it is let go before its end, its sink answers.
class AnswerJob : public std::enable_shared_from_this<AnswerJob> {
 public:
  static void start(ServingContext& context, const AnswerFormat& format, Call call);

  AnswerJob(ServingContext& context, const AnswerFormat& format, Call call);

 private:
  /// What is left of a request once the engine has it.
  struct Submitted {
    Stream stream;
    int num_choices = 1;
    bool streams = false;
    bool include_usage = false;
  };

  ApiExpected<Submitted> submit() const;
  void begin();
  void drain();
  void take(const Event& event);
  void observe(const Event& event);
  void send_whole(const Usage& usage);
  void fail(const ApiError& error);
  /// Runs `work` on the I/O thread; what it throws ends the answer with an error.
  template <typename Work>
  void guard(Work work);
  void leave(Outcome outcome);

  ServingContext& context_;
  Call call_;
  AnswerFormat format_;
  std::atomic<bool> ended_{false};  // written on the I/O thread

  std::optional<ApiExpected<Submitted>> outcome_;  // of submit(), on its way to begin()
  std::optional<Submitted> submitted_;
  bool shows_events_ = false;  // the head of the stream has been sent
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<std::optional<double>> last_token_ms_;  // of each choice, since submission
  bool has_token_ = false;
};

}  // namespace anyslot::server

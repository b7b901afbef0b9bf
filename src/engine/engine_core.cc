#include "engine/engine_core.h"

#include <exception>
#include <future>
#include <new>
#include <utility>

#include "engine/prepare_request.h"

namespace anyslot::internal {

namespace {

constexpr size_t kTokenMemoBytes = size_t{64} << 20;

Status shutting_down() { return {StatusCode::kUnavailable, "the engine is shutting down"}; }

// On the submitting thread, since many long strings take time.
std::vector<AnswerText> texts_with_stops(const SamplingParams& sampling,
                                         const std::shared_ptr<const Tokenizer>& tokenizer) {
  if (sampling.stop.empty()) return {};
  const auto patterns = std::make_shared<const StopPatterns>(sampling.stop);
  return std::vector<AnswerText>(static_cast<size_t>(sampling.n),
                                 AnswerText(tokenizer, sampling, patterns));
}

}  // namespace

EngineCore::EngineCore(EngineParts parts)
    : parts_(std::move(parts)),
      memo_(kTokenMemoBytes),
      commands_(std::make_shared<CommandQueue>()),
      loop_(parts_, commands_),
      thread_([this] { loop_.run(); }) {}

EngineCore::~EngineCore() {
  close();
  thread_.join();
  if (parts_.trace != nullptr) static_cast<void>(parts_.trace->finish());
}

Expected<std::shared_ptr<StreamState>> EngineCore::submit(const Request& request) {
  const Clock::time_point submitted = Clock::now();
  auto given = prepare_request(request, parts_, memo_);
  if (!given.ok()) return given.status();
  const auto shared = std::make_shared<GivenRequest>(*std::move(given));
  auto choices = make_choices(shared, request.sampling.n);
  std::vector<AnswerText> texts = texts_with_stops(request.sampling, parts_.tokenizer);
  const std::lock_guard lock(submit_mutex_);
  const uint64_t request_id = std::exchange(next_id_, next_id_ + choices.size());
  for (const auto& choice : choices) {
    choice->request_id = request_id;
    choice->id = request_id + static_cast<uint64_t>(choice->choice);
  }
  auto stream =
      std::make_shared<StreamState>(request_id, commands_, parts_.tokenizer, request.sampling);
  if (!commands_->push(SubmitCommand{std::move(choices), std::move(texts), stream, submitted,
                                     request.fit_max_tokens ? shared : nullptr})) {
    return shutting_down();
  }
  return stream;
}

std::function<void()> EngineCore::register_document(
    const Segment& document, const DocumentOptions& options,
    std::function<void(Expected<CachedDocument>)> done) {
  auto given = prepare_document(document, options, parts_, memo_);
  if (!given.ok()) {
    done(given.status());
    return [] {};
  }
  auto sequences = make_choices(std::make_shared<const GivenRequest>(*std::move(given)), 1);
  Command command = RegisterCommand{std::move(sequences.front()), std::move(done)};
  auto& registration = std::get<RegisterCommand>(command);
  {
    const std::lock_guard lock(submit_mutex_);
    const uint64_t id = next_id_++;
    registration.document->id = registration.document->request_id = id;
    if (commands_->push(std::move(command))) {
      return [commands = commands_, id] { commands->push(CancelCommand{id}); };
    }
  }
  registration.done(shutting_down());
  return [] {};
}

// The promise is shared: the engine's thread may still be in it when the wait is over.
Status EngineCore::call(const std::function<Status(StepLoop&)>& call) {
  Status result = shutting_down();
  const auto done = std::make_shared<std::promise<void>>();
  const auto run = [&] {
    try {
      result = call(loop_);
    } catch (const std::bad_alloc&) {
      result = resource_exhausted("memory does not suffice");
    } catch (const std::exception& error) {
      result = internal_error(error.what());
    }
  };
  if (commands_->push(CallCommand{run, [done] { done->set_value(); }})) done->get_future().wait();
  return result;
}

}  // namespace anyslot::internal

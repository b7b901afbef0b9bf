#include "anyslot/engine.h"

#include <exception>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "engine/engine_core.h"

namespace anyslot {

Stream::Stream(std::shared_ptr<internal::StreamState> state) : state_(std::move(state)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  if (state_ != nullptr && state_ != other.state_) state_->abandon();
  state_ = std::move(other.state_);
  return *this;
}

Stream::~Stream() {
  if (state_ != nullptr) state_->abandon();
}

Event Stream::next() { return state_->next(); }

std::optional<Event> Stream::try_next() { return state_->try_next(); }

void Stream::on_ready(std::function<void()> ready) { state_->on_ready(std::move(ready)); }

void Stream::cancel() { state_->cancel(); }

Engine::Engine(std::unique_ptr<internal::EngineCore> core) : core_(std::move(core)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Expected<Engine> Engine::open(const EngineConfig& config) {
  try {
    auto parts = internal::load_engine_parts(config);
    if (!parts.ok()) return parts.status();
    return Engine(std::make_unique<internal::EngineCore>(std::move(*parts)));
  } catch (const std::filesystem::filesystem_error& error) {
    return failed_precondition(error.what());
  } catch (const std::system_error& error) {
    return resource_exhausted(std::string("the system gives no more threads (") + error.what() +
                              "); lower --threads");
  } catch (const std::bad_alloc&) {
    return resource_exhausted("memory does not suffice to load " + config.model_path +
                              config.random_weights_config);
  }
}

Expected<Stream> Engine::submit(const Request& request) {
  auto state = core_->submit(request);
  if (!state.ok()) return state.status();
  return Stream(std::move(*state));
}

std::function<void()> Engine::register_document(
    const Segment& document, const DocumentOptions& options,
    std::function<void(Expected<CachedDocument>)> done) {
  return core_->register_document(document, options, std::move(done));
}

Expected<CachedDocument> Engine::register_document(const Segment& document,
                                                   const DocumentOptions& options) {
  const auto result = std::make_shared<std::promise<Expected<CachedDocument>>>();
  core_->register_document(document, options, [result](Expected<CachedDocument> registered) {
    result->set_value(std::move(registered));
  });
  return result->get_future().get();
}

Expected<std::vector<CachedDocument>> Engine::documents(const std::string& cache_salt) const {
  std::vector<CachedDocument> documents;
  const Status status = core_->call([&](internal::StepLoop& loop) {
    documents = loop.documents().list(cache_salt);
    return Status();
  });
  if (!status.ok()) return status;
  return documents;
}

Status Engine::pin_document(const std::string& key, const std::string& cache_salt) {
  return core_->call(
      [&](internal::StepLoop& loop) { return loop.documents().pin(key, cache_salt); });
}

Status Engine::unpin_document(const std::string& key, const std::string& cache_salt) {
  return core_->call(
      [&](internal::StepLoop& loop) { return loop.documents().unpin(key, cache_salt); });
}

Status Engine::remove_document(const std::string& key, const std::string& cache_salt) {
  return core_->call(
      [&](internal::StepLoop& loop) { return loop.documents().remove(key, cache_salt); });
}

Expected<std::vector<Segment>> Engine::render_rag(const std::vector<Document>& documents,
                                                  const std::string& question) const {
  if (!core_->parts().rag_template) {
    return failed_precondition(
        core_->parts().config.model_path +
        " has no rag_template.json, which says how documents and question become a prompt");
  }
  return core_->parts().rag_template->render(documents, question);
}

Expected<std::vector<Segment>> Engine::render_chat(const std::vector<ChatMessage>& messages,
                                                   const std::vector<Document>& documents) const {
  const internal::EngineParts& parts = core_->parts();
  if (parts.rag_template) return parts.rag_template->render_chat(messages, documents);
  if (parts.chat_template) return parts.chat_template->render(messages, documents);
  return failed_precondition(
      parts.model.name +
      " has neither rag_template.json nor a chat template (tokenizer_config.json, "
      "chat_template.jinja) that this build can render; send a finished prompt instead");
}

Expected<std::vector<int32_t>> Engine::tokenize(const std::string& text,
                                                const std::vector<ByteRange>& markup) const {
  if (core_->parts().tokenizer == nullptr) {
    return failed_precondition(core_->parts().config.model_path + " has no tokenizer.json");
  }
  return core_->parts().tokenizer->encode(text, markup);
}

std::string Engine::detokenize(const std::vector<int32_t>& token_ids) const {
  if (core_->parts().tokenizer == nullptr) return {};
  return core_->parts().tokenizer->decode(token_ids, /*skip_special_tokens=*/true);
}

std::string Engine::token_bytes(int32_t token_id) const {
  if (core_->parts().tokenizer == nullptr) return {};
  return std::string(core_->parts().tokenizer->token_bytes(token_id));
}

const ModelInfo& Engine::model() const { return core_->parts().model; }

Stats Engine::stats() const { return core_->stats(); }

Status Engine::check_integrity() const {
  return core_->call([](internal::StepLoop& loop) { return loop.check_integrity(); });
}

std::function<Status()> Engine::trace_finisher() const {
  return [trace = core_->parts().trace] { return trace == nullptr ? Status() : trace->finish(); };
}

}  // namespace anyslot

// Asks the model in argv[1] the same question twice, with the documents in another order the second
// time, and fails unless both answers are right and the second one found every document in the
// cache.
#include <anyslot/anyslot.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Answer {
  std::string text;
  anyslot::Usage usage;
};

anyslot::Expected<Answer> ask(anyslot::Engine& engine,
                              const std::vector<anyslot::Document>& documents,
                              const std::string& question) {
  auto segments = engine.render_rag(documents, question);
  if (!segments) return segments.status();
  anyslot::Request request;
  request.segments = std::move(*segments);
  auto stream = engine.submit(std::move(request));
  if (!stream) return stream.status();
  Answer answer;
  while (true) {
    anyslot::Event event = stream->next();
    answer.text += event.text;
    if (!event.finish_reason) continue;
    if (event.finish_reason == anyslot::FinishReason::kError)
      return anyslot::internal_error(event.error);
    answer.usage = std::move(event.usage);
    return answer;
  }
}

int run(const std::string& model) {
  anyslot::EngineConfig config;
  config.model_path = model;
  auto engine = anyslot::Engine::open(config);
  if (!engine) {
    std::fprintf(stderr, "open: %s\n", engine.status().message().c_str());
    return 1;
  }
  const anyslot::Document town{
      "Lornaburg", "Lornaburg is a city in Japan. The river Masa flows through it.", ""};
  const anyslot::Document film{
      "The Last Door",
      "The Last Door is a 1987 Kenyan war film directed by Orro Bradahl and starring "
      "Mela Norwick.",
      ""};
  for (const auto& documents : {std::vector{town, film}, std::vector{film, town}}) {
    auto answer = ask(*engine, documents, "Which river flows through Lornaburg?");
    if (!answer) {
      std::fprintf(stderr, "ask: %s\n", answer.status().message().c_str());
      return 1;
    }
    std::printf("%s (%lld of %lld prompt tokens cached)\n", answer->text.c_str(),
                static_cast<long long>(answer->usage.cached_tokens),
                static_cast<long long>(answer->usage.prompt_tokens));
    if (answer->text != "Masa") return 1;
    for (const auto& document : answer->usage.documents) {
      const bool again = documents.front().title == film.title;
      if (again && document.cached_tokens != document.tokens) return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: consumer MODEL\n");
    return 2;
  }
  return run(argv[1]);
}

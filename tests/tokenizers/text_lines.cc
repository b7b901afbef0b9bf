// Does what a test in another language asks for, a JSON array on each line of standard input, and
// writes one line of JSON for each:  text_lines MODEL-FOLDER-OR-GGUF-FILE
//
//   ["encode", text]                ids of a text that is all markup, with BOS and EOS
//   ["content", text]               ids of a text without markup
//   ["decode", ids, skip]           text of ids: [as a whole, from a stream]
//   ["chat", messages, documents]   [{document, text, markup, ids}] of each segment that the
//                                   model's chat template makes, or {error}
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/model_files.h"
#include "text/detokenizer.h"

namespace anyslot {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

class Session {
 public:
  explicit Session(const std::string& model)
      : files_(must(internal::open_model_files(model))), tokenizer_(must(files_->tokenizer())) {
    if (!tokenizer_) throw std::runtime_error(model + " has no tokenizer");
  }

  json answer(const json& request) {
    const auto what = request.at(0).get<std::string>();
    if (what == "decode") return decode(request.at(1).get<Ids>(), request.at(2).get<bool>());
    if (what == "chat") return chat(request.at(1), request.at(2));
    const auto text = request.at(1).get<std::string>();
    if (what == "content") return must(tokenizer_->encode(text));
    if (what != "encode") throw std::runtime_error("unknown request " + what);
    const ByteRange all{0, text.size()};
    return tokenizer_->add_special_tokens(must(tokenizer_->encode(text, std::span(&all, 1))));
  }

 private:
  template <typename T>
  static T must(Expected<T> result) {
    if (!result) throw std::runtime_error(result.status().message());
    return *std::move(result);
  }

  json decode(const Ids& ids, bool skip) const {
    StreamingDetokenizer detokenizer(*tokenizer_, skip);
    std::string streamed;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.push(id);
      (void)json(piece).dump();  // throws when the piece ends inside a character
      streamed += piece;
    }
    return {tokenizer_->decode(ids, skip), streamed + detokenizer.flush()};
  }

  json chat(const json& messages, const json& documents) {
    if (!template_) template_ = must(files_->chat_template());
    if (!template_) throw std::runtime_error(files_->name() + " has no chat template");
    std::vector<ChatMessage> conversation;
    for (const json& message : messages) {
      const auto role = message.at("role").get<std::string>();
      conversation.push_back({role == "system" ? ChatRole::kSystem
                              : role == "user" ? ChatRole::kUser
                                               : ChatRole::kAssistant,
                              message.at("content").get<std::string>(),
                              {}});
    }
    std::vector<Document> given;
    for (const json& document : documents) {
      Document one;
      if (document.contains("title")) one.title = document["title"].get<std::string>();
      one.text = document.at("text").get<std::string>();
      given.push_back(std::move(one));
    }
    const Expected<std::vector<Segment>> segments = template_->render(conversation, given);
    if (!segments) return {{"error", segments.status().message()}};
    json out = json::array();
    for (const Segment& segment : *segments) {
      json markup = json::array();
      for (const ByteRange& range : segment.markup) markup.push_back({range.begin, range.end});
      out.push_back({{"document", segment.kind == SegmentKind::kDocument},
                     {"text", segment.text},
                     {"markup", markup},
                     {"ids", must(tokenizer_->encode(segment.text, segment.markup))}});
    }
    return out;
  }

  std::unique_ptr<internal::ModelFiles> files_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
};

int run(const char* model) {
  Session session(model);
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) std::cout << session.answer(json::parse(line)) << '\n';
  return 0;
}

}  // namespace
}  // namespace anyslot

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: text_lines MODEL-FOLDER-OR-GGUF-FILE\n";
    return 2;
  }
  try {
    return anyslot::run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}

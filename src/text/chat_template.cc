#include "text/chat_template.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <exception>
#include <iomanip>
#include <minja/minja.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "text/chat_template_source.h"
#include "text/message_name.h"

namespace anyslot {

using nlohmann::ordered_json;

namespace {

/// A text that goes into the template: the content of a message, or the title or text of a
/// document. In a second rendering a mark stands for it, so that its place in the output is known.
struct Insert {
  std::string what;  // for people
  std::string value;
  std::string mark;
  int document = -1;  // its index; -1: of a message
};

struct Conversation {
  ordered_json messages = ordered_json::array();
  ordered_json documents = ordered_json::array();
};

/// Letters and digits only: a template may trim or quote them without a change.
constexpr std::string_view kMarkBegin = "aNysLot";
constexpr std::string_view kMarkEnd = "Mark";

std::string mark_of(size_t index) {
  return std::string(kMarkBegin) + std::to_string(index) + std::string(kMarkEnd);
}

struct MarkPlace {
  size_t at = 0;
  int count = 0;  // how often the mark stands in the output
};

/// The places of all marks, in one pass: there may be very many messages.
std::vector<MarkPlace> find_marks(std::string_view marked, size_t num_marks) {
  std::vector<MarkPlace> places(num_marks);
  const char* const end = marked.data() + marked.size();
  for (size_t at = marked.find(kMarkBegin); at != std::string_view::npos;
       at = marked.find(kMarkBegin, at + 1)) {
    size_t index = 0;
    const auto [rest, error] = std::from_chars(marked.data() + at + kMarkBegin.size(), end, index);
    const bool is_mark = error == std::errc() && index < num_marks &&
                         std::string_view(rest, end).starts_with(kMarkEnd);
    if (is_mark) places[index] = {at, places[index].count + 1};
  }
  return places;
}

std::string_view role_name(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "system";
    case ChatRole::kUser:
      return "user";
    case ChatRole::kAssistant:
      return "assistant";
  }
  return "";
}

std::vector<Insert> inserts_of(const std::vector<ChatMessage>& messages,
                               const std::vector<Document>& documents) {
  std::vector<Insert> inserts;
  const auto add = [&](std::string what, const std::string& value, int document) {
    inserts.push_back({std::move(what), value, mark_of(inserts.size()), document});
  };
  for (size_t i = 0; i < messages.size(); ++i) {
    add(message_name(messages[i], i), messages[i].content, -1);
  }
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string name = "documents[" + std::to_string(i) + "]";
    if (documents[i].title) {
      add("the title of " + name, *documents[i].title, static_cast<int>(i));
    }
    add("the text of " + name, documents[i].text, static_cast<int>(i));
  }
  return inserts;
}

/// What the template sees, with the values or with the marks.
Conversation conversation_of(const std::vector<ChatMessage>& messages,
                             const std::vector<Document>& documents,
                             const std::vector<Insert>& inserts, std::string Insert::*content) {
  Conversation conversation;
  auto insert = inserts.begin();
  for (const ChatMessage& message : messages) {
    conversation.messages.push_back(
        {{"role", role_name(message.role)}, {"content", (*insert++).*content}});
  }
  for (const Document& document : documents) {
    ordered_json entry = ordered_json::object();
    if (document.title) entry["title"] = (*insert++).*content;
    entry["text"] = (*insert++).*content;
    conversation.documents.push_back(std::move(entry));
  }
  return conversation;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

/// A piece of the output: what the template wrote, or an insert.
struct Piece {
  std::string_view text;
  const Insert* insert = nullptr;
};

/// Cuts the output into pieces with the help of the marked one. Fails when they do not tell the
/// same story.
Expected<std::vector<Piece>> cut(std::string_view output, std::string_view marked,
                                 const std::vector<Insert>& inserts) {
  std::vector<std::pair<size_t, const Insert*>> places;
  const std::vector<MarkPlace> marks = find_marks(marked, inserts.size());
  for (size_t i = 0; i < inserts.size(); ++i) {
    const Insert& insert = inserts[i];
    const bool is_of_message = insert.document < 0;
    if (marks[i].count == 0 && is_of_message && trimmed(insert.value).empty()) continue;
    if (marks[i].count != 1) {
      return invalid_argument(
                 "the model's chat template does not place " + insert.what +
                 " exactly once; leave it out, or write a rag_template.json for the model")
          .about(is_of_message ? "messages" : "documents");
    }
    places.emplace_back(marks[i].at, &insert);
  }
  std::ranges::sort(places);
  const Status altered = invalid_argument(
      "the model's chat template alters what it is given, so it cannot be told from what the "
      "template wrote; write a rag_template.json for the model");
  std::vector<Piece> pieces;
  size_t read = 0;  // of marked
  for (const auto& [at, insert] : places) {
    const std::string_view literal = marked.substr(read, at - read);
    if (!output.starts_with(literal)) return altered;
    if (!literal.empty()) pieces.push_back({output.substr(0, literal.size()), nullptr});
    output.remove_prefix(literal.size());
    std::string_view value = insert->value;
    if (!output.starts_with(value)) value = trimmed(value);
    if (!output.starts_with(value)) return altered;
    pieces.push_back({output.substr(0, value.size()), insert});
    output.remove_prefix(value.size());
    read = at + insert->mark.size();
  }
  if (output != marked.substr(read)) return altered;
  if (!output.empty()) pieces.push_back({output, nullptr});
  return pieces;
}

void append_piece(Segment& segment, const Piece& piece) {
  const size_t begin = segment.text.size();
  segment.text += piece.text;
  if (piece.insert == nullptr) segment.markup.push_back({begin, segment.text.size()});
}

/// Whether a piece belongs to the document that the segment holds: it is of it, or the template
/// wrote it between two pieces of it.
bool continues_document(const std::vector<Piece>& pieces, size_t index, int document) {
  for (size_t i = index; i < pieces.size(); ++i) {
    if (pieces[i].insert != nullptr) return pieces[i].insert->document == document;
  }
  return false;
}

Expected<std::vector<Segment>> segments_of(const std::vector<Piece>& pieces,
                                           const std::vector<Document>& documents) {
  std::vector<Segment> segments;
  int num_documents = 0;
  int current = -1;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool inside = current >= 0 && continues_document(pieces, i, current);
    const int document = pieces[i].insert != nullptr ? pieces[i].insert->document
                         : inside                    ? current
                                                     : -1;
    if (segments.empty() || document != current) {
      Segment segment;
      segment.kind = document < 0 ? SegmentKind::kText : SegmentKind::kDocument;
      if (document >= 0) {
        if (document != num_documents++) {
          return invalid_argument(
                     "the model's chat template does not place the documents one after the other "
                     "and in their order; write a rag_template.json for the model")
              .about("documents");
        }
        segment.id = documents[static_cast<size_t>(document)].id;
      }
      segments.push_back(std::move(segment));
      current = document;
    }
    append_piece(segments.back(), pieces[i]);
  }
  return segments;
}

Status check_input(const std::vector<ChatMessage>& messages,
                   const std::vector<Document>& documents) {
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].documents.empty()) continue;
    const std::string name = message_name(messages[i], i);
    return invalid_argument(name +
                            " has documents, which the model's chat template cannot place; give "
                            "them beside the messages, or write a rag_template.json for the model")
        .about(name);
  }
  for (size_t i = 0; i < documents.size(); ++i) {
    if (!documents[i].text.empty()) continue;
    return invalid_argument("documents[" + std::to_string(i) +
                            "] has no text: there is nothing to encode; leave it out");
  }
  return {};
}

/// What templates call to write today's date.
minja::Value strftime_now() {
  return minja::Value::callable([](const std::shared_ptr<minja::Context>& /*caller*/,
                                   minja::ArgumentsValue& args) {
    args.expectArgs("strftime_now", {1, 1}, {0, 0});
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm local{};
    localtime_r(&now, &local);
    std::ostringstream text;
    text << std::put_time(&local, args.args[0].get<std::string>().c_str());
    return minja::Value(text.str());
  });
}

/// The variables of one rendering. A macro holds those it was defined among, which hold the macro:
/// at the end they let go of everything, else each rendering would stay in memory.
class Variables {
 public:
  explicit Variables(const ordered_json& values)
      : context_(minja::Context::make(minja::Value(values))) {
    context_->set("strftime_now", strftime_now());
  }
  ~Variables() {
    for (const minja::Value& key : context_->keys()) context_->set(key, minja::Value());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

  const std::shared_ptr<minja::Context>& context() const { return context_; }

 private:
  std::shared_ptr<minja::Context> context_;
};

}  // namespace

class ChatTemplate::Renderer {
 public:
  explicit Renderer(const ChatTemplateSource& source)
      : root_(minja::Parser::parse(
            source.text,
            {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false})),
        bos_token_(source.bos_token),
        eos_token_(source.eos_token) {}

  std::string render(const Conversation& conversation) const {
    ordered_json values = {{"messages", conversation.messages},
                           {"add_generation_prompt", true},
                           {"bos_token", bos_token_},
                           {"eos_token", eos_token_}};
    if (!conversation.documents.empty()) values["documents"] = conversation.documents;
    const Variables variables(values);
    return root_->render(variables.context());
  }

 private:
  std::shared_ptr<minja::TemplateNode> root_;
  std::string bos_token_;
  std::string eos_token_;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Renderer> renderer)
    : renderer_(std::move(renderer)) {}

Expected<std::optional<ChatTemplate>> ChatTemplate::load(const std::string& folder) {
  const Expected<std::optional<ChatTemplateSource>> source = read_chat_template(folder);
  if (!source) return source.status();
  if (!*source) return std::optional<ChatTemplate>();
  return create(**source);
}

Expected<std::optional<ChatTemplate>> ChatTemplate::create(const ChatTemplateSource& source) {
  try {
    return std::optional<ChatTemplate>(ChatTemplate(std::make_shared<const Renderer>(source)));
  } catch (const std::exception& error) {
    return failed_precondition(source.path + ": the chat template is broken: " + error.what());
  }
}

Expected<std::vector<Segment>> ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                                    const std::vector<Document>& documents) const {
  if (Status status = check_input(messages, documents); !status.ok()) return status;
  const std::vector<Insert> inserts = inserts_of(messages, documents);
  try {
    const std::string output =
        renderer_->render(conversation_of(messages, documents, inserts, &Insert::value));
    const std::string marked =
        renderer_->render(conversation_of(messages, documents, inserts, &Insert::mark));
    const Expected<std::vector<Piece>> pieces = cut(output, marked, inserts);
    if (!pieces) return pieces.status();
    return segments_of(*pieces, documents);
  } catch (const std::exception& error) {
    return invalid_argument(std::string("the model's chat template refuses the messages: ") +
                            error.what())
        .about("messages");
  }
}

}  // namespace anyslot

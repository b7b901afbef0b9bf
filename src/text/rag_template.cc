#include "text/rag_template.h"

#include <algorithm>
#include <utility>

#include "text/json_fields.h"
#include "text/message_name.h"

namespace anyslot {

using nlohmann::json;

namespace {

constexpr int64_t kVersion = 1;

TextTemplate read_template(JsonFields& fields, const std::string& key,
                           const std::vector<std::string_view>& known, std::string_view needed) {
  const std::string text = fields.get_string(key);
  if (!fields.ok()) return {};
  Expected<TextTemplate> parsed = TextTemplate::parse(text, known);
  if (!parsed) {
    fields.fail(key, parsed.status().message());
    return {};
  }
  if (!needed.empty() && !parsed->has_placeholder(needed)) {
    fields.fail(key, "must contain {" + std::string(needed) + "}");
  }
  return *std::move(parsed);
}

std::vector<std::string> read_stop(JsonFields& fields) {
  std::vector<std::string> stop;
  for (const json& token : fields.get_array("stop")) {
    if (!token.is_string() || token.get_ref<const std::string&>().empty()) {
      fields.fail("stop", "must hold names of tokens, not " + token.dump());
      break;
    }
    stop.push_back(token.get<std::string>());
  }
  return stop;
}

Status check_no_documents(const ChatMessage& message, size_t index) {
  if (message.documents.empty()) return {};
  const std::string name = message_name(message, index);
  return invalid_argument(name + " has documents; only a user's message can have them").about(name);
}

Status wrong_role(const std::string& name, ChatRole expected) {
  return invalid_argument(name + " must be the " +
                          (expected == ChatRole::kUser ? "user" : "assistant") +
                          "'s: after the system's messages, user and assistant take turns")
      .about(name);
}

/// The end of a turn may be written by the answer and by the question that follows: it stands once.
void drop_overlap(const Segment& answer, Segment& question) {
  if (answer.markup.empty() || question.markup.empty()) return;
  const ByteRange& last = answer.markup.back();
  const ByteRange& first = question.markup.front();
  if (last.end != answer.text.size() || first.begin != 0) return;
  const std::string_view end = std::string_view(answer.text).substr(last.begin);
  const std::string_view begin = std::string_view(question.text).substr(0, first.end);
  size_t size = std::min(end.size(), begin.size());
  while (size > 0 && !end.ends_with(begin.substr(0, size))) --size;
  question.text.erase(0, size);
  for (ByteRange& range : question.markup) {
    range.begin -= std::min(size, range.begin);
    range.end -= size;
  }
}

}  // namespace

Expected<RagTemplate> RagTemplate::load(const std::string& path) {
  const Expected<std::string> text = read_file(path);
  if (!text) return text.status();
  const Expected<json> file = parse_json(path, *text);
  if (!file) return file.status();

  JsonFields fields(*file, path);
  RagTemplate result;
  const int64_t version = fields.get_integer("version");
  if (fields.ok() && version != kVersion) {
    fields.fail("version", std::to_string(version) +
                               " is not supported (supported: " + std::to_string(kVersion) + ")");
  }
  if (fields.find("name") != nullptr) result.name_ = fields.get_string("name");
  result.preamble_ = read_template(fields, "preamble", {"system"}, "");
  result.document_ = read_template(fields, "document", {"title", "text"}, "text");
  result.query_ = read_template(fields, "query", {"question"}, "question");
  if (fields.find("next_query") != nullptr) {
    result.next_query_ = read_template(fields, "next_query", {"question"}, "question");
  }
  result.assistant_ = read_template(fields, "assistant", {"answer"}, "answer");
  result.stop_ = read_stop(fields);
  result.block_trained_ = fields.get_bool("block_trained");
  if (Status status = fields.finish(); !status.ok()) return status;
  return result;
}

Expected<std::vector<Segment>> RagTemplate::render(const std::vector<Document>& documents,
                                                   const std::string& question) const {
  return render_chat({{ChatRole::kUser, question, {}}}, documents);
}

Expected<std::vector<Segment>> RagTemplate::render_chat(
    const std::vector<ChatMessage>& messages, const std::vector<Document>& documents) const {
  std::string system;
  size_t next = 0;
  for (; next < messages.size() && messages[next].role == ChatRole::kSystem; ++next) {
    if (Status status = check_no_documents(messages[next], next); !status.ok()) return status;
    system += (system.empty() ? "" : "\n\n") + messages[next].content;
  }
  std::vector<Segment> segments;
  if (Segment preamble = render_preamble(system); !preamble.text.empty()) {
    segments.push_back(std::move(preamble));
  }
  if (Status status = append_documents(documents, segments); !status.ok()) return status;

  ChatRole expected = ChatRole::kUser;
  bool asked = false;
  for (; next < messages.size(); ++next) {
    const ChatMessage& message = messages[next];
    if (message.role != expected) return wrong_role(message_name(message, next), expected);
    if (message.role == ChatRole::kUser) {
      if (Status status = append_documents(message.documents, segments); !status.ok()) {
        return status;
      }
      const Segment* answer =
          asked && segments.back().kind == SegmentKind::kText ? &segments.back() : nullptr;
      segments.push_back(render_query(message.content, answer));
      asked = true;
      expected = ChatRole::kAssistant;
    } else {
      if (Status status = check_no_documents(message, next); !status.ok()) return status;
      segments.push_back(render_answer(message.content));
      expected = ChatRole::kUser;
    }
  }
  if (expected != ChatRole::kAssistant) {
    return invalid_argument("the last message must be the user's: there is nothing to answer")
        .about("messages");
  }
  return segments;
}

Segment RagTemplate::render_preamble(const std::string& system) const {
  Segment preamble = preamble_.render(SegmentKind::kText, {{"system", system}});
  if (!system.empty() && !preamble_.has_placeholder("system")) preamble.text += system + "\n\n";
  return preamble;
}

Status RagTemplate::append_documents(const std::vector<Document>& documents,
                                     std::vector<Segment>& segments) const {
  for (size_t i = 0; i < documents.size(); ++i) {
    const Document& document = documents[i];
    if (document.text.empty()) {
      return invalid_argument("document " + std::to_string(i) +
                              " has no text: there is nothing to encode; leave it out");
    }
    Segment segment;
    if (document.title) {
      segment = document_.render(SegmentKind::kDocument,
                                 {{"title", *document.title}, {"text", document.text}});
    } else {
      segment.kind = SegmentKind::kDocument;
      segment.text = document.text;
    }
    segment.id = document.id;
    segments.push_back(std::move(segment));
  }
  return {};
}

Segment RagTemplate::render_query(const std::string& question, const Segment* answer) const {
  const bool has_own = answer != nullptr && next_query_;
  const TextTemplate& query = has_own ? *next_query_ : query_;
  Segment segment = query.render(SegmentKind::kText, {{"question", question}});
  if (answer != nullptr && !has_own) drop_overlap(*answer, segment);
  return segment;
}

Segment RagTemplate::render_answer(const std::string& answer) const {
  return assistant_.render(SegmentKind::kText, {{"answer", answer}});
}

}  // namespace anyslot

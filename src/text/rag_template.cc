#include "text/rag_template.h"

#include <algorithm>

#include "text/json_fields.h"

namespace anyslot {

using nlohmann::json;

namespace {

constexpr int64_t kVersion = 1;

/// The size of the "{name}" that `text` starts with; 0 when it is something else.
size_t placeholder_size(std::string_view text) {
  if (!text.starts_with('{')) return 0;
  size_t end = 1;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (end < text.size() && (is_letter(text[end]) || (end > 1 && is_digit(text[end])))) ++end;
  return end > 1 && end < text.size() && text[end] == '}' ? end + 1 : 0;
}

std::string list_of(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "{" : ", {") + std::string(name) + "}";
  }
  return list.empty() ? "none" : list;
}

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

}  // namespace

Expected<TextTemplate> TextTemplate::parse(std::string_view text,
                                           const std::vector<std::string_view>& known) {
  TextTemplate result;
  size_t literal = 0;  // everything before this is in a part
  for (size_t at = 0; at < text.size();) {
    const size_t size = placeholder_size(text.substr(at));
    if (size == 0) {
      ++at;
      continue;
    }
    const std::string name(text.substr(at + 1, size - 2));
    if (std::ranges::find(known, name) == known.end()) {
      return failed_precondition("unknown placeholder {" + name +
                                 "} (known here: " + list_of(known) + ")");
    }
    if (at > literal)
      result.parts_.push_back({false, std::string(text.substr(literal, at - literal))});
    result.parts_.push_back({true, name});
    at += size;
    literal = at;
  }
  if (literal < text.size()) result.parts_.push_back({false, std::string(text.substr(literal))});
  return result;
}

bool TextTemplate::has_placeholder(std::string_view name) const {
  return std::ranges::any_of(
      parts_, [name](const Part& part) { return part.placeholder && part.text == name; });
}

Segment TextTemplate::render(SegmentKind kind, const Values& values) const {
  Segment segment;
  segment.kind = kind;
  for (const Part& part : parts_) {
    if (!part.placeholder) {
      const size_t begin = segment.text.size();
      segment.text += part.text;
      segment.markup.push_back({begin, segment.text.size()});
      continue;
    }
    const auto value =
        std::ranges::find(values, part.text, [](const auto& entry) { return entry.first; });
    if (value != values.end()) segment.text += value->second;
  }
  return segment;
}

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
  result.preamble_ = read_template(fields, "preamble", {}, "");
  result.document_ = read_template(fields, "document", {"title", "text"}, "text");
  result.query_ = read_template(fields, "query", {"question"}, "question");
  result.assistant_ = read_template(fields, "assistant", {"answer"}, "answer");
  result.stop_ = read_stop(fields);
  result.block_trained_ = fields.get_bool("block_trained");
  if (Status status = fields.finish(); !status.ok()) return status;
  return result;
}

Expected<std::vector<Segment>> RagTemplate::render(const std::vector<Document>& documents,
                                                   const std::string& question) const {
  std::vector<Segment> segments;
  segments.reserve(documents.size() + 2);
  Segment preamble = preamble_.render(SegmentKind::kText, {});
  if (!preamble.text.empty()) segments.push_back(std::move(preamble));
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
  segments.push_back(query_.render(SegmentKind::kText, {{"question", question}}));
  return segments;
}

Segment RagTemplate::render_answer(const std::string& answer) const {
  return assistant_.render(SegmentKind::kText, {{"answer", answer}});
}

}  // namespace anyslot

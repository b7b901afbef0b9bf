#include "text/rag_template.h"

#include <utility>

#include "text/json_fields.h"

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

#include "input_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "text_file.h"

namespace anyslot::cli {
namespace {

using nlohmann::json;

/// What is wrong with a row; caught where the name and line are known.
struct RowError {
  std::string reason;
  int line = 1;  // within the text that was parsed
};

[[noreturn]] void fail(std::string reason) { throw RowError{std::move(reason)}; }
[[noreturn]] void fail_at(std::string_view text, size_t offset, std::string_view reason) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_begin = before.rfind('\n') + 1;  // 0 when there is none
  throw RowError{fmt::format("column {}: {}", offset - line_begin + 1, reason), lines + 1};
}

const json* find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string string_of(const json& value, const std::string& what) {
  if (!value.is_string()) fail(fmt::format("{} must be a string, not {}", what, value.type_name()));
  return value.get<std::string>();
}

std::string field(const json& object, const char* key, const std::string& what) {
  const json* value = find(object, key);
  if (value == nullptr) fail(fmt::format("{} has no \"{}\"", what, key));
  return string_of(*value, fmt::format("\"{}\" of {}", key, what));
}

/// An id as given; segments and documents take integers too, as text.
std::string id_text(const json& object, const std::string& what) {
  const json* id = find(object, "id");
  if (id == nullptr) return {};
  if (id->is_number_integer()) return id->dump();
  return string_of(*id, fmt::format("\"id\" of {}", what));
}

const json& array_of(const json& value, const char* key) {
  if (!value.is_array())
    fail(fmt::format("\"{}\" must be an array, not {}", key, value.type_name()));
  return value;
}

Document document_of(const json& value, size_t index) {
  const std::string what = fmt::format("document {}", index);
  Document document;
  if (value.is_string()) {
    document.text = value.get<std::string>();
  } else if (value.is_object()) {
    if (find(value, "title") == nullptr) {
      fail(what + " has no \"title\"; a text that should stand as it is can be given as a string");
    }
    document.title = field(value, "title", what);
    document.text = field(value, "text", what);
    document.id = id_text(value, what);
  } else {
    fail(fmt::format("{} must be a string or {{\"title\", \"text\"}}, not {}", what,
                     value.type_name()));
  }
  if (document.text.find_first_not_of(" \t\r\n") == std::string::npos) fail(what + " is empty");
  return document;
}

std::vector<int32_t> token_ids_of(const json& value, const std::string& what) {
  if (!value.is_array()) {
    fail(fmt::format("\"token_ids\" of {} must be an array, not {}", what, value.type_name()));
  }
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const json& id : value) {
    if (!id.is_number_integer()) fail("\"token_ids\" of " + what + " must hold integers");
    const auto number = id.get<int64_t>();
    if (number < 0 || number > std::numeric_limits<int32_t>::max()) {
      fail(fmt::format("\"token_ids\" of {}: {} is no token id", what, id.dump()));
    }
    ids.push_back(static_cast<int32_t>(number));
  }
  return ids;
}

Segment segment_of(const json& value, size_t index) {
  const std::string what = fmt::format("segment {}", index);
  if (!value.is_object())
    fail(fmt::format("{} must be an object, not {}", what, value.type_name()));
  Segment segment;
  const std::string type = field(value, "type", what);
  if (type == "document") {
    segment.kind = SegmentKind::kDocument;
  } else if (type != "text") {
    fail(fmt::format("\"type\" of {} is \"{}\"; it must be \"document\" or \"text\"", what, type));
  }
  const json* text = find(value, "text");
  const json* ids = find(value, "token_ids");
  if ((text == nullptr) == (ids == nullptr)) {
    fail(what + " needs either \"text\" or \"token_ids\"");
  }
  if (text != nullptr) segment.text = string_of(*text, "\"text\" of " + what);
  if (ids != nullptr) segment.token_ids = token_ids_of(*ids, what);
  if (segment.text.empty() && segment.token_ids.empty()) fail(what + " is empty");
  segment.id = id_text(value, what);
  return segment;
}

std::vector<Segment> segments_of(const json& value) {
  std::vector<Segment> segments;
  for (const json& segment : array_of(value, "segments")) {
    segments.push_back(segment_of(segment, segments.size()));
  }
  if (segments.empty()) fail("\"segments\" is empty");
  if (segments.back().kind == SegmentKind::kDocument) {
    fail("the last segment is a document: there is nothing to answer; end with a \"text\" segment");
  }
  return segments;
}

void read_question_form(const json& object, InputRow& row) {
  const json* question = find(object, "question");
  const json* documents = find(object, "documents");
  if (question == nullptr && documents == nullptr) {
    fail("the row has neither \"documents\" and \"question\" nor \"segments\"");
  }
  if (question == nullptr) fail("no question: the row has no \"question\"");
  row.question = string_of(*question, "\"question\"");
  if (row.question.find_first_not_of(" \t\r\n") == std::string::npos) {
    fail("no question: \"question\" is empty");
  }
  if (documents == nullptr) fail("the row has no \"documents\"");
  for (const json& document : array_of(*documents, "documents")) {
    row.documents.push_back(document_of(document, row.documents.size()));
  }
  if (row.documents.empty()) {
    fail("\"documents\" is empty; a prompt without documents can be given as \"segments\"");
  }
}

void read_options(const json& object, InputRow& row) {
  for (const char* name :
       {"temperature", "top_p", "top_k", "min_p", "seed", "stop", "min_tokens",
        "repetition_penalty", "presence_penalty", "frequency_penalty", "stream", "dtype"}) {
    if (find(object, name) != nullptr) {
      fail(fmt::format("\"{}\" cannot be set per row; use the options of the command line", name));
    }
  }
  if (const json* max_tokens = find(object, "max_tokens")) {
    if (!max_tokens->is_number_integer() || *max_tokens < 1 ||
        *max_tokens > std::numeric_limits<int>::max()) {
      fail(fmt::format("\"max_tokens\" must be an integer of at least 1, not {}",
                       max_tokens->dump(-1, ' ', false, json::error_handler_t::replace)));
    }
    row.max_tokens = max_tokens->get<int>();
  }
  if (const json* method = find(object, "method")) {
    Expected<Method> parsed = parse_method(string_of(*method, "\"method\""));
    if (!parsed) fail(parsed.status().message());
    row.method = *parsed;
  }
}

/// The offset of the first bracket that opens more than kMaxJsonDepth levels. The JSON library
/// recurses when it prints or copies a value, so deeper ones could exhaust the stack.
std::optional<size_t> find_deep_nesting(std::string_view text) {
  constexpr int kMaxJsonDepth = 64;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (++depth > kMaxJsonDepth) return i;
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return std::nullopt;
}

json parse_object(std::string_view text) {
  if (const auto offset = find_invalid_utf8(text)) fail_at(text, *offset, "invalid UTF-8");
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail_at(text, nul, "invalid JSON: a NUL byte");
  }
  if (const auto offset = find_deep_nesting(text)) {
    fail_at(text, *offset, "the JSON nests more than 64 levels deep");
  }
  json object;
  try {
    object = json::parse(text);
  } catch (const json::out_of_range&) {
    fail("a number is out of range");
  } catch (const json::parse_error& error) {
    // The library's own prefix and line number are dropped: ours counts the lines of the file.
    std::string_view reason = error.what();
    if (const size_t colon = reason.find(": "); colon != std::string_view::npos) {
      reason.remove_prefix(colon + 2);
    }
    fail_at(text, std::min(error.byte == 0 ? 0 : error.byte - 1, text.size()),
            fmt::format("invalid JSON: {}", reason));
  }
  if (!object.is_object()) {
    fail(fmt::format("found {}, expected one JSON object", object.type_name()));
  }
  return object;
}

InputRow parse_row(std::string_view line, int number) {
  const json object = parse_object(line);
  InputRow row;
  row.line = number;
  row.id = number;
  if (const json* id = find(object, "id")) {
    if (!id->is_string() && !id->is_number_integer()) fail("\"id\" must be a string or an integer");
    row.id = *id;
  }
  if (const json* segments = find(object, "segments")) {
    if (find(object, "documents") != nullptr || find(object, "question") != nullptr) {
      fail("the row has \"segments\" as well as \"documents\" or \"question\"; give one form");
    }
    row.segments = segments_of(*segments);
  } else {
    read_question_form(object, row);
  }
  if (const json* answers = find(object, "answers")) {
    for (const json& answer : array_of(*answers, "answers")) {
      row.answers.push_back(string_of(answer, "an entry of \"answers\""));
    }
  }
  read_options(object, row);
  return row;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

}  // namespace

Expected<std::vector<InputRow>> parse_input_rows(std::string_view text, const std::string& name) {
  std::vector<InputRow> rows;
  text = without_byte_order_mark(text);
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      rows.push_back(parse_row(line, number));
    } catch (const RowError& error) {
      return invalid_argument(fmt::format("{}:{}: {}", name, number, error.reason));
    }
  }
  if (rows.empty()) return invalid_argument(fmt::format("{} holds no rows", name));
  return rows;
}

Expected<std::vector<InputRow>> load_input_rows(const std::string& path) {
  Expected<std::string> text = read_file(path);
  if (!text) return text.status();
  return parse_input_rows(*text, input_name(path));
}

Expected<std::vector<Segment>> load_segments(const std::string& path) {
  Expected<std::string> text = read_file(path);
  if (!text) return text.status();
  const std::string_view bytes = without_byte_order_mark(*text);
  try {
    const json object = parse_object(bytes);
    const json* segments = find(object, "segments");
    if (segments == nullptr) fail("the object has no \"segments\"");
    return segments_of(*segments);
  } catch (const RowError& error) {
    return invalid_argument(fmt::format("{}:{}: {}", input_name(path), error.line, error.reason));
  }
}

}  // namespace anyslot::cli

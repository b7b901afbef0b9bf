#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/engine.h"

namespace anyslot::cli {

/// One line of the input of `anyslot run`. Either documents and a question, which go through the
/// model's template, or segments in any order, which are used as they are.
struct InputRow {
  int line = 0;       // counted from 1
  nlohmann::json id;  // a string or an integer; the line number where the row has none
  std::vector<Document> documents;
  std::string question;
  std::vector<Segment> segments;     // not empty: the row has this form
  std::vector<std::string> answers;  // the right ones; empty: unknown
  std::optional<int> max_tokens;
  std::optional<Method> method;
};

/// Reads JSON lines; blank lines and unknown fields are passed over. Fails with kInvalidArgument
/// and "name:line: reason" at the first row that is not usable: invalid JSON or UTF-8, no question,
/// no documents, an empty document, a wrong type, a field that only the command line can set.
Expected<std::vector<InputRow>> parse_input_rows(std::string_view text, const std::string& name);

/// The same from a file, "-" being standard input.
Expected<std::vector<InputRow>> load_input_rows(const std::string& path);

/// Reads {"segments": [{"type", "text" | "token_ids", "id"?}, ...]} from a file, "-" being standard
/// input.
Expected<std::vector<Segment>> load_segments(const std::string& path);

}  // namespace anyslot::cli

#include "text/pattern_reader.h"

#include <utility>

namespace anyslot {

Expected<Pattern> read_pattern(JsonFields& fields) {
  JsonFields pattern(fields.get_object("pattern"), fields.name("pattern"));
  if (!fields.ok()) return fields.status();
  const bool is_literal = pattern.find("String") != nullptr;
  std::string text = pattern.get_string(is_literal ? "String" : "Regex");
  if (is_literal && text.empty()) pattern.fail("String", "must not be empty");
  if (Status status = pattern.finish(); !status.ok()) return status;
  if (is_literal) return Pattern(std::move(text));
  Expected<Regex> regex = Regex::compile(text);
  if (!regex) return failed_precondition(fields.name("pattern") + ": " + regex.status().message());
  return Pattern(*std::move(regex));
}

}  // namespace anyslot

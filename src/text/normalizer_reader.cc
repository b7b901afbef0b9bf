#include "text/normalizer_reader.h"

#include <array>
#include <optional>
#include <utility>

#include "text/json_fields.h"
#include "text/pattern_reader.h"

namespace anyslot {

using nlohmann::json;

namespace {

std::optional<UnicodeForm> unicode_form(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, UnicodeForm>, 4> kForms = {{
      {"NFC", UnicodeForm::kNfc},
      {"NFD", UnicodeForm::kNfd},
      {"NFKC", UnicodeForm::kNfkc},
      {"NFKD", UnicodeForm::kNfkd},
  }};
  for (const auto& [name, form] : kForms) {
    if (type == name) return form;
  }
  return std::nullopt;
}

Status read_step(const json& object, const std::string& where, bool may_be_sequence,
                 std::vector<Normalizer::Step>& steps);

Status read_sequence(JsonFields& fields, std::vector<Normalizer::Step>& steps) {
  const json& entries = fields.get_array("normalizers");
  if (Status status = fields.finish(); !status.ok()) return status;
  for (size_t i = 0; i < entries.size(); ++i) {
    Status status = read_step(entries[i], indexed(fields.name("normalizers"), i), false, steps);
    if (!status.ok()) return status;
  }
  return {};
}

Status read_replace(JsonFields& fields, std::vector<Normalizer::Step>& steps) {
  std::string content = fields.get_string("content");
  Expected<Pattern> pattern = read_pattern(fields);
  if (!pattern) return pattern.status();
  steps.emplace_back(ReplaceStep{*std::move(pattern), std::move(content)});
  return fields.finish();
}

Status read_step(const json& object, const std::string& where, bool may_be_sequence,
                 std::vector<Normalizer::Step>& steps) {
  JsonFields fields(object, where);
  const std::string type = fields.get_string("type");
  if (!fields.ok()) return fields.status();
  if (type == "Sequence" && may_be_sequence) return read_sequence(fields, steps);
  if (type == "Replace") return read_replace(fields, steps);
  if (const std::optional<UnicodeForm> form = unicode_form(type)) {
    steps.emplace_back(UnicodeFormStep{*form});
  } else if (type == "Lowercase") {
    steps.emplace_back(LowercaseStep{});
  } else if (type == "Prepend") {
    steps.emplace_back(PrependStep{fields.get_string("prepend")});
  } else if (type == "Strip") {
    const bool left = fields.bool_or("strip_left", true);
    steps.emplace_back(TrimStep{left, fields.bool_or("strip_right", true)});
  } else {
    fields.fail("type", unsupported_type(type,
                                         "Lowercase, NFC, NFD, NFKC, NFKD, Prepend, Replace, "
                                         "Strip, or a Sequence of them"));
  }
  return fields.finish();
}

}  // namespace

Expected<std::vector<Normalizer::Step>> read_normalizer(const json& object,
                                                        const std::string& where) {
  std::vector<Normalizer::Step> steps;
  if (Status status = read_step(object, where, true, steps); !status.ok()) return status;
  return steps;
}

}  // namespace anyslot

#include "text/post_processor.h"

#include "text/json_fields.h"

namespace anyslot {

using nlohmann::json;

namespace {

/// Reads the ids of a TemplateProcessing's special token.
Status read_template_ids(JsonFields& fields, const json& special_tokens, const std::string& name,
                         const Vocabulary& vocabulary, std::vector<int32_t>& out) {
  const auto entry = special_tokens.find(name);
  if (entry == special_tokens.end()) {
    fields.fail("special_tokens", "'" + name + "' is missing");
    return fields.status();
  }
  JsonFields token(*entry, fields.name("special_tokens") + "." + name);
  token.ignore({"id", "tokens"});
  const json& ids = token.get_array("ids");
  for (const json& id : ids) {
    const bool known = id.is_number_integer() && id.get<int64_t>() >= 0 &&
                       id.get<int64_t>() < vocabulary.size() &&
                       vocabulary.find(id.get<int32_t>()) != nullptr;
    if (!known) {
      token.fail("ids", "no token has the id " + id.dump());
      break;
    }
    out.push_back(id.get<int32_t>());
  }
  return token.finish();
}

Status read_template(JsonFields& fields, const Vocabulary& vocabulary, PostProcessor& out) {
  const json& single = fields.get_array("single");
  const json& special_tokens = fields.get_object("special_tokens");
  fields.ignore({"pair"});  // pairs of sequences are never encoded
  if (Status status = fields.finish(); !status.ok()) return status;

  std::vector<int32_t> before;
  std::vector<int32_t> behind;
  int sequences = 0;
  for (size_t i = 0; i < single.size(); ++i) {
    JsonFields piece(single[i], indexed(fields.name("single"), i));
    const bool is_sequence = piece.find("Sequence") != nullptr;
    const std::string key = is_sequence ? "Sequence" : "SpecialToken";
    JsonFields inner(piece.get_object(key), piece.name(key));
    inner.ignore({"type_id"});
    const std::string name = inner.get_string("id");
    piece.fail(inner.finish());
    if (Status status = piece.finish(); !status.ok()) return status;
    if (is_sequence) {
      ++sequences;
      continue;
    }
    Status status = read_template_ids(fields, special_tokens, name, vocabulary,
                                      sequences == 0 ? before : behind);
    if (!status.ok()) return status;
  }
  if (sequences != 1) {
    fields.fail("single", "must hold the sequence exactly once");
    return fields.status();
  }
  // Of several templates each wraps what the ones before it made.
  out.prefix_ids.insert(out.prefix_ids.begin(), before.begin(), before.end());
  out.suffix_ids.insert(out.suffix_ids.end(), behind.begin(), behind.end());
  return {};
}

Status read_processor(const json& object, const std::string& where, bool may_be_sequence,
                      const Vocabulary& vocabulary, PostProcessor& out) {
  JsonFields fields(object, where);
  const std::string type = fields.get_string("type");
  if (!fields.ok()) return fields.status();
  if (type == "TemplateProcessing") return read_template(fields, vocabulary, out);
  if (type == "ByteLevel") return {};  // about offsets only
  if (type != "Sequence" || !may_be_sequence) {
    return failed_precondition(
        where +
        ".type: " + unsupported_type(type, "a Sequence of ByteLevel and TemplateProcessing"));
  }
  const json& processors = fields.get_array("processors");
  if (Status status = fields.finish(); !status.ok()) return status;
  for (size_t i = 0; i < processors.size(); ++i) {
    const std::string inner = indexed(fields.name("processors"), i);
    Status status = read_processor(processors[i], inner, false, vocabulary, out);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Expected<PostProcessor> read_post_processor(const json& object, const std::string& where,
                                            const Vocabulary& vocabulary) {
  PostProcessor out;
  if (Status status = read_processor(object, where, true, vocabulary, out); !status.ok())
    return status;
  return out;
}

}  // namespace anyslot

#include "text/bpe_reader.h"

#include <optional>
#include <utility>

namespace anyslot {

using nlohmann::json;

namespace {

Status read_vocabulary(const json& vocab, const std::string& where, Vocabulary& vocabulary) {
  for (const auto& [name, id] : vocab.items()) {
    if (!id.is_number_integer()) {
      return failed_precondition(where + ": the id of '" + name + "' must be a whole number");
    }
    const Status status = vocabulary.add(id.get<int64_t>(), {.name = name, .in_model = true});
    if (!status.ok()) return failed_precondition(where + ": " + status.message());
  }
  return {};
}

/// The two names of a merge, written "a b" or ["a", "b"].
std::optional<std::pair<std::string, std::string>> merge_names(const json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (!merge.is_string()) return std::nullopt;
  const auto& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

Status read_merges(const json& merges, const std::string& where, TokenizerDescription& out) {
  const auto id_of = [&](const std::string& name) {
    std::optional<int32_t> id = out.vocabulary.id(name);
    return id && out.vocabulary.find(*id)->in_model ? id : std::nullopt;
  };
  out.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto names = merge_names(merges[i]);
    if (!names) {
      return failed_precondition(indexed(where, i) +
                                 R"(: must be "left right" or ["left", "right"])");
    }
    const std::string joined = names->first + names->second;
    for (const std::string* name : {&names->first, &names->second, &joined}) {
      if (name->empty() || !id_of(*name)) {
        return failed_precondition(indexed(where, i) + ": '" + *name + "' is not in model.vocab");
      }
    }
    out.merges.push_back({*id_of(names->first), *id_of(names->second), *id_of(joined)});
  }
  return {};
}

Status read_unknown(JsonFields& fields, TokenizerDescription& out) {
  out.fuse_unknown = fields.bool_or("fuse_unk", false);
  if (fields.find("unk_token") == nullptr) return {};
  const std::string name = fields.get_string("unk_token");
  out.unknown_id = out.vocabulary.id(name);
  // Over bytes nothing is unknown, and files name tokens there that they do not have.
  if (fields.ok() && !out.unknown_id && !out.byte_level) {
    fields.fail("unk_token", "'" + name + "' is not in model.vocab");
  }
  return fields.status();
}

void refuse_other_bpe(JsonFields& fields) {
  const std::string type = fields.find("type") == nullptr ? "BPE" : fields.get_string("type");
  if (type != "BPE") return fields.fail("type", unsupported_type(type, "BPE"));
  if (const json* dropout = fields.find("dropout"); dropout != nullptr && *dropout != 0) {
    fields.fail("dropout", "must be null: random merges are not supported");
  }
  for (const std::string key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json* text = fields.find(key); text != nullptr && *text != "") {
      fields.fail(key, "must be null: marked subwords are not supported");
    }
  }
}

}  // namespace

Status read_bpe_vocabulary(JsonFields& file, TokenizerDescription& out) {
  JsonFields fields(file.get_object("model"), file.name("model"));
  if (!file.ok()) return file.status();
  refuse_other_bpe(fields);
  const json& vocab = fields.get_object("vocab");
  fields.ignore({"merges", "ignore_merges", "byte_fallback", "unk_token", "fuse_unk"});
  if (Status status = fields.finish(); !status.ok()) return status;
  return read_vocabulary(vocab, fields.name("vocab"), out.vocabulary);
}

Status read_bpe(JsonFields& file, TokenizerDescription& out) {
  JsonFields fields(file.get_object("model"), file.name("model"));
  out.ignore_merges = fields.bool_or("ignore_merges", false);
  out.byte_fallback = fields.bool_or("byte_fallback", false);
  if (Status status = read_unknown(fields, out); !status.ok()) return status;
  const json& merges = fields.get_array("merges");
  if (!fields.ok()) return fields.status();
  return read_merges(merges, fields.name("merges"), out);
}

}  // namespace anyslot

#include "text/bpe_reader.h"

#include <optional>
#include <utility>

#include "text/bpe_merges.h"

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
std::optional<MergeNames> merge_names(const json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return MergeNames(merge[0].get_ref<const std::string&>(),
                      merge[1].get_ref<const std::string&>());
  }
  if (!merge.is_string()) return std::nullopt;
  return split_merge(merge.get_ref<const std::string&>());
}

Status read_merges(const json& merges, const std::string& where, TokenizerDescription& out) {
  out.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::optional<MergeNames> names = merge_names(merges[i]);
    const Status status = names
                              ? add_merge(*names, out)
                              : failed_precondition(R"(must be "left right" or ["left", "right"])");
    if (!status.ok()) return failed_precondition(indexed(where, i) + ": " + status.message());
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

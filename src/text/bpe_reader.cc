#include "text/bpe_reader.h"

#include <array>
#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/json_fields.h"
#include "text/utf8.h"

namespace anyslot {

using nlohmann::json;

namespace {

Status read_vocabulary(const json& vocab, const std::string& where, Vocabulary& vocabulary) {
  for (const auto& [name, id] : vocab.items()) {
    if (!id.is_number_integer()) {
      return failed_precondition(where + ": the id of '" + name + "' must be a whole number");
    }
    // A name outside the byte-level alphabet is no result of merging and decodes to itself.
    const std::optional<std::string> bytes = alphabet_to_bytes(name);
    const Status status =
        vocabulary.add(id.get<int64_t>(), {.name = name, .bytes = bytes.value_or(name)});
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

Status read_merges(const json& merges, const std::string& where, const Vocabulary& vocabulary,
                   std::vector<BpeMerge>& out) {
  out.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto names = merge_names(merges[i]);
    if (!names) {
      return failed_precondition(indexed(where, i) +
                                 R"(: must be "left right" or ["left", "right"])");
    }
    const std::string joined = names->first + names->second;
    for (const std::string* name : {&names->first, &names->second, &joined}) {
      if (!vocabulary.id(*name)) {
        return failed_precondition(indexed(where, i) + ": '" + *name + "' is not in model.vocab");
      }
    }
    const int32_t result = *vocabulary.id(joined);
    if (vocabulary.find(result)->special) continue;
    out.push_back({*vocabulary.id(names->first), *vocabulary.id(names->second), result});
  }
  return {};
}

bool occurs_in_utf8(int byte) { return byte != 0xC0 && byte != 0xC1 && byte <= 0xF4; }

Status read_byte_ids(const std::string& where, const Vocabulary& vocabulary,
                     std::array<int32_t, 256>& out) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string name;
    append_code_point(name, byte_to_alphabet(static_cast<uint8_t>(byte)));
    const std::optional<int32_t> id = vocabulary.id(name);
    if (!id && occurs_in_utf8(byte)) {
      return failed_precondition(where + ": '" + name + "', the byte-level token of byte " +
                                 std::to_string(byte) +
                                 ", is missing; only byte-level BPE is supported");
    }
    if (id && vocabulary.find(*id)->special) {
      return failed_precondition(where + ": '" + name +
                                 "' is the token of a byte and cannot be special");
    }
    out[byte] = id.value_or(-1);
  }
  return {};
}

void refuse_other_bpe(JsonFields& fields) {
  const std::string type = fields.find("type") == nullptr ? "BPE" : fields.get_string("type");
  if (type != "BPE") return fields.fail("type", unsupported_type(type, "BPE"));
  if (const json* dropout = fields.find("dropout"); dropout != nullptr && *dropout != 0) {
    fields.fail("dropout", "must be null: random merges are not supported");
  }
  if (fields.bool_or("byte_fallback", false)) {
    fields.fail("byte_fallback", "is not supported: only byte-level BPE is");
  }
  for (const std::string key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json* text = fields.find(key); text != nullptr && *text != "") {
      fields.fail(key, "must be null: marked subwords are not supported");
    }
  }
  fields.ignore({"unk_token", "fuse_unk"});  // every byte has a token, so nothing is unknown
}

}  // namespace

Status read_bpe_vocabulary(const json& model, const std::string& where, Vocabulary& vocabulary) {
  JsonFields fields(model, where);
  refuse_other_bpe(fields);
  const json& vocab = fields.get_object("vocab");
  fields.ignore({"merges", "ignore_merges"});
  if (Status status = fields.finish(); !status.ok()) return status;
  return read_vocabulary(vocab, fields.name("vocab"), vocabulary);
}

Expected<Bpe> read_bpe(const json& model, const std::string& where, const Vocabulary& vocabulary) {
  JsonFields fields(model, where);
  Bpe::Options options;
  options.ignore_merges = fields.bool_or("ignore_merges", false);
  const json& merges = fields.get_array("merges");
  fields.fail(read_byte_ids(fields.name("vocab"), vocabulary, options.byte_ids));
  if (!fields.ok()) return fields.status();
  if (Status status = read_merges(merges, fields.name("merges"), vocabulary, options.merges);
      !status.ok()) {
    return status;
  }
  if (options.ignore_merges) {
    for (const auto& [name, id] : fields.get_object("vocab").items()) {
      std::optional<std::string> bytes = alphabet_to_bytes(name);
      const auto token = id.get<int32_t>();
      if (!bytes || vocabulary.find(token)->special) continue;
      options.whole_words.emplace(*std::move(bytes), token);
    }
  }
  return Bpe(std::move(options));
}

}  // namespace anyslot

#include "text/tokenizer_file.h"

#include <utility>

#include "text/bpe_reader.h"
#include "text/json_fields.h"
#include "text/pre_tokenizer_reader.h"

namespace anyslot {

using nlohmann::json;

namespace {

Status read_added_token(const json& entry, const std::string& where, Vocabulary& vocabulary,
                        std::vector<AddedToken>& out) {
  JsonFields fields(entry, where);
  const int64_t id = fields.get_integer("id");
  AddedToken token;
  token.content = fields.get_string("content");
  token.single_word = fields.bool_or("single_word", false);
  token.lstrip = fields.bool_or("lstrip", false);
  token.rstrip = fields.bool_or("rstrip", false);
  const bool special = fields.bool_or("special", false);
  token.normalized = fields.bool_or("normalized", !special);
  if (fields.ok() && token.content.empty()) fields.fail("content", "must not be empty");
  if (Status status = fields.finish(); !status.ok()) return status;

  if (vocabulary.id(token.content) != id) {
    const Status status =
        vocabulary.add(id, {.name = token.content, .bytes = token.content, .special = special});
    if (!status.ok()) return failed_precondition(where + ": " + status.message());
  }
  token.id = static_cast<int32_t>(id);
  // A token of the model that is not special goes on decoding to the bytes that merge into it.
  if (special) vocabulary.make_special(token.id);
  out.push_back(std::move(token));
  return {};
}

Status read_added_tokens(const json* entries, const std::string& where, TokenizerParts& parts) {
  if (entries == nullptr) return {};
  if (!entries->is_array()) return failed_precondition(where + ": must be an array");
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < entries->size(); ++i) {
    Status status = read_added_token((*entries)[i], indexed(where, i), parts.vocabulary, tokens);
    if (!status.ok()) return status;
  }
  parts.added_tokens = AddedTokens(std::move(tokens));
  return {};
}

void check_decoder(JsonFields& top) {
  JsonFields fields(top.get_object("decoder"), top.name("decoder"));
  const std::string type = fields.get_string("type");
  fields.ignore({"add_prefix_space", "trim_offsets", "use_regex"});  // without effect when decoding
  if (fields.ok() && type != "ByteLevel") {
    fields.fail("type", unsupported_type(type, "ByteLevel"));
  }
  top.fail(fields.finish());
}

void check_top_level(JsonFields& top) {
  const std::string version = top.get_string("version");
  if (top.ok() && version != "1.0")
    top.fail("version", "'" + version + "' is not supported (supported: 1.0)");
  for (const std::string key : {"truncation", "padding"}) {
    if (top.find(key) != nullptr) top.fail(key, "is not supported; set it to null");
  }
  if (const json* normalizer = top.find("normalizer")) {
    JsonFields fields(*normalizer, top.name("normalizer"));
    const std::string type = fields.get_string("type");
    top.fail(fields.status());
    top.fail("normalizer", unsupported_type(type, "null"));
  }
  check_decoder(top);
}

}  // namespace

Expected<TokenizerParts> load_tokenizer_file(const std::string& path) {
  const Expected<std::string> text = read_file(path);
  if (!text) return text.status();
  return read_tokenizer_json(path, *text);
}

Expected<TokenizerParts> read_tokenizer_json(const std::string& path, const std::string& text) {
  const Expected<json> file = parse_json(path, text);
  if (!file) return file.status();
  TokenizerParts parts;
  parts.fingerprint = DigestBuilder().add(text).finish();
  JsonFields top(*file, path);
  check_top_level(top);
  const json& model = top.get_object("model");
  const json& pre_tokenizer = top.get_object("pre_tokenizer");
  const json* added_tokens = top.find("added_tokens");
  const json* post_processor = top.find("post_processor");
  if (Status status = top.finish(); !status.ok()) return status;

  Expected<PreTokenizer> words = read_pre_tokenizer(pre_tokenizer, top.name("pre_tokenizer"));
  if (!words) return words.status();
  parts.pre_tokenizer = *std::move(words);
  const std::string model_name = top.name("model");
  Status status = read_bpe_vocabulary(model, model_name, parts.vocabulary);
  if (status.ok()) status = read_added_tokens(added_tokens, top.name("added_tokens"), parts);
  if (!status.ok()) return status;
  Expected<Bpe> bpe = read_bpe(model, model_name, parts.vocabulary);
  if (!bpe) return bpe.status();
  parts.model = *std::move(bpe);
  if (post_processor != nullptr) {
    Expected<PostProcessor> around =
        read_post_processor(*post_processor, top.name("post_processor"), parts.vocabulary);
    if (!around) return around.status();
    parts.post_processor = *std::move(around);
  }
  return parts;
}

}  // namespace anyslot

#include "text/tokenizer_file.h"

#include <utility>

#include "text/bpe_reader.h"
#include "text/json_fields.h"
#include "text/normalizer_reader.h"
#include "text/pre_tokenizer_reader.h"
#include "text/token_decoder_reader.h"

namespace anyslot {

using nlohmann::json;

namespace {

Status read_added_token(const json& entry, const std::string& where, TokenizerDescription& out) {
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

  if (out.vocabulary.id(token.content) != id) {
    const Status status = out.vocabulary.add(id, {.name = token.content});
    if (!status.ok()) return failed_precondition(where + ": " + status.message());
  }
  token.id = static_cast<int32_t>(id);
  if (special) out.vocabulary.make_special(token.id);
  out.added_tokens.push_back(std::move(token));
  return {};
}

Status read_added_tokens(const json* entries, const std::string& where, TokenizerDescription& out) {
  if (entries == nullptr) return {};
  if (!entries->is_array()) return failed_precondition(where + ": must be an array");
  for (size_t i = 0; i < entries->size(); ++i) {
    Status status = read_added_token((*entries)[i], indexed(where, i), out);
    if (!status.ok()) return status;
  }
  return {};
}

/// What happens to a text before the model sees it.
Status read_text_steps(JsonFields& top, TokenizerDescription& out) {
  if (const json* object = top.find("normalizer")) {
    Expected<std::vector<Normalizer::Step>> steps =
        read_normalizer(*object, top.name("normalizer"));
    if (!steps) return steps.status();
    out.normalizer = *std::move(steps);
  }
  if (const json* object = top.find("pre_tokenizer")) {
    Expected<PreTokenizerFields> read = read_pre_tokenizer(*object, top.name("pre_tokenizer"));
    if (!read) return read.status();
    out.pre_tokenizer = std::move(read->steps);
    out.byte_level = read->byte_level;
  }
  return {};
}

Status read_decoder(JsonFields& top, TokenizerDescription& out) {
  const json& object = top.get_object("decoder");
  if (!top.ok()) return top.status();
  Expected<TokenDecoder::Options> decoder = read_token_decoder(object, top.name("decoder"));
  if (!decoder) return decoder.status();
  out.decoder = *std::move(decoder);
  return {};
}

Status read_post_processor(JsonFields& top, TokenizerDescription& out) {
  const json* object = top.find("post_processor");
  if (object == nullptr) return {};
  Expected<PostProcessor> read =
      read_post_processor(*object, top.name("post_processor"), out.vocabulary);
  if (!read) return read.status();
  out.post_processor = *std::move(read);
  return {};
}

}  // namespace

Expected<TokenizerDescription> read_tokenizer_file(const std::string& path) {
  const Expected<std::string> text = read_file(path);
  if (!text) return text.status();
  return read_tokenizer_json(path, *text);
}

Expected<TokenizerDescription> read_tokenizer_json(const std::string& path,
                                                   const std::string& text) {
  const Expected<json> file = parse_json(path, text);
  if (!file) return file.status();
  TokenizerDescription out;
  out.source = path;
  out.fingerprint = DigestBuilder().add(text).finish();
  JsonFields top(*file, path);
  const std::string version = top.get_string("version");
  if (top.ok() && version != "1.0")
    top.fail("version", "'" + version + "' is not supported (supported: 1.0)");
  // Left over from training: how a batch of texts is cut and filled up to one length. A prompt here
  // is never cut (one that is too long is refused) and never filled up.
  top.ignore({"truncation", "padding"});
  Status status = top.status();
  if (status.ok()) status = read_text_steps(top, out);
  if (status.ok()) status = read_decoder(top, out);
  if (status.ok()) status = read_bpe_vocabulary(top, out);
  if (status.ok())
    status = read_added_tokens(top.find("added_tokens"), top.name("added_tokens"), out);
  if (status.ok()) status = read_bpe(top, out);
  if (status.ok()) status = read_post_processor(top, out);
  if (status.ok()) status = top.finish();
  if (!status.ok()) return status;
  return out;
}

}  // namespace anyslot

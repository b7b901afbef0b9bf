#include "engine/gguf_tokenizer_source.h"

namespace anyslot::internal {

GgufTokenizer gguf_tokenizer_source(const GgufFields& fields) {
  GgufTokenizer source;
  source.where = fields.file().path();
  source.model = fields.text("tokenizer.ggml.model").value_or("");
  source.pre = fields.text("tokenizer.ggml.pre").value_or("");
  source.tokens = fields.texts("tokenizer.ggml.tokens");
  source.token_type = fields.integers("tokenizer.ggml.token_type");
  source.scores = fields.numbers("tokenizer.ggml.scores");
  source.merges = fields.texts("tokenizer.ggml.merges");
  source.bos_token_id = fields.integer("tokenizer.ggml.bos_token_id");
  source.eos_token_id = fields.integer("tokenizer.ggml.eos_token_id");
  source.unknown_token_id = fields.integer("tokenizer.ggml.unknown_token_id");
  source.add_bos_token = fields.boolean("tokenizer.ggml.add_bos_token");
  source.add_eos_token = fields.boolean("tokenizer.ggml.add_eos_token");
  source.add_space_prefix = fields.boolean("tokenizer.ggml.add_space_prefix");
  source.of_phi3 = fields.text("general.architecture") == "phi3";
  return source;
}

}  // namespace anyslot::internal

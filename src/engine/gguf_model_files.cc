#include "engine/gguf_model_files.h"

#include <filesystem>
#include <utility>

#include "engine/gguf_tokenizer_source.h"
#include "model/gguf/gguf_architecture.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_weights.h"
#include "text/chat_template_source.h"

namespace anyslot::internal {

namespace {

namespace fs = std::filesystem;

class GgufModelFiles final : public ModelFiles {
 public:
  explicit GgufModelFiles(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

  std::string name() const override { return fs::path(file_->path()).stem().string(); }

  Expected<ModelConfig> config(int64_t max_model_len) const override {
    return gguf_config(*file_, max_model_len);
  }

  Expected<std::unique_ptr<WeightSource>> weights(const ModelConfig& config,
                                                  int num_threads) const override {
    return gguf_weights(file_, config, num_threads);
  }

  Expected<std::optional<Tokenizer>> tokenizer() const override {
    Status status;
    const GgufFields fields(*file_, status);
    const bool has_one = fields.has("tokenizer.ggml.model") || fields.has("tokenizer.ggml.tokens");
    if (!has_one) return std::optional<Tokenizer>();
    const GgufTokenizer source = gguf_tokenizer_source(fields);
    if (!status.ok()) return status;
    Expected<Tokenizer> tokenizer = Tokenizer::create(source);
    if (!tokenizer.ok()) return tokenizer.status();
    return std::optional<Tokenizer>(std::move(*tokenizer));
  }

  Expected<std::optional<ChatTemplate>> chat_template() const override {
    const auto source = chat_template_source();
    if (!source.ok()) return source.status();
    if (!*source) return std::optional<ChatTemplate>();
    return ChatTemplate::create(**source);
  }

  Expected<std::optional<ChatTemplateSource>> chat_template_source() const override {
    Status status;
    const GgufFields fields(*file_, status);
    const auto text = fields.text("tokenizer.chat_template");
    if (!status.ok()) return status;
    if (!text) return std::optional<ChatTemplateSource>();
    Status ignored;  // what is wrong with the tokens, the tokenizer fails with
    const GgufTokenizer tokens = gguf_tokenizer_source(GgufFields(*file_, ignored));
    return std::optional<ChatTemplateSource>(
        {.path = file_->path(),
         .text = std::string(*text),
         .bos_token = std::string(tokens.token_name(tokens.bos_token_id)),
         .eos_token = std::string(tokens.token_name(tokens.eos_token_id))});
  }

  std::string rag_template_path() const override {
    return (fs::path(file_->path()).parent_path() / "rag_template.json").string();
  }

  Expected<ConfigOutline> outline() const override { return gguf_config_outline(*file_); }

  Expected<TensorList> tensors() const override {
    Status ignored;
    const auto name = GgufFields(*file_, ignored).text("general.architecture").value_or("");
    return TensorList{
        "GGUF version " + std::to_string(kGgufVersion) + ", architecture " + std::string(name),
        gguf_tensors(*file_)};
  }

  std::string tensor_name(const std::string& name) const override {
    const auto architecture = gguf_architecture(*file_);
    std::string stored = architecture.ok() ? gguf_tensor_name(**architecture, name) : "";
    return stored.empty() ? name : stored;
  }

 private:
  std::shared_ptr<const GgufFile> file_;
};

}  // namespace

Expected<std::unique_ptr<ModelFiles>> open_gguf_model_files(const std::string& path) {
  Expected<std::shared_ptr<const GgufFile>> file = GgufFile::open(path);
  if (!file.ok()) return file.status();
  return std::unique_ptr<ModelFiles>(std::make_unique<GgufModelFiles>(std::move(*file)));
}

}  // namespace anyslot::internal

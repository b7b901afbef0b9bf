#include "engine/model_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/gguf_model_files.h"
#include "model/safetensors.h"

namespace anyslot::internal {

namespace {

namespace fs = std::filesystem;

/// A Hugging Face folder.
class FolderFiles final : public ModelFiles {
 public:
  explicit FolderFiles(std::string folder) : folder_(std::move(folder)) {}

  std::string name() const override {
    fs::path folder = fs::path(folder_).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    return folder.filename().string();
  }

  Expected<ModelConfig> config(int64_t max_model_len) const override {
    return load_model_config(folder_, max_model_len);
  }

  Expected<std::unique_ptr<WeightSource>> weights(const ModelConfig& /*config*/,
                                                  int /*num_threads*/) const override {
    Expected<TensorStore> store = TensorStore::open(folder_);
    if (!store.ok()) return store.status();
    return file_weights(std::move(*store));
  }

  Expected<std::optional<Tokenizer>> tokenizer() const override {
    const std::string path = (fs::path(folder_) / "tokenizer.json").string();
    if (!is_there(path)) return std::optional<Tokenizer>();
    Expected<Tokenizer> tokenizer = Tokenizer::load(path);
    if (!tokenizer.ok()) return tokenizer.status();
    return std::optional<Tokenizer>(std::move(*tokenizer));
  }

  Expected<std::optional<ChatTemplate>> chat_template() const override {
    return ChatTemplate::load(folder_);
  }

  Expected<std::optional<ChatTemplateSource>> chat_template_source() const override {
    return read_chat_template(folder_);
  }

  std::string rag_template_path() const override {
    return (fs::path(folder_) / "rag_template.json").string();
  }

  Expected<ConfigOutline> outline() const override { return load_config_outline(folder_); }

  Expected<TensorList> tensors() const override {
    const Expected<TensorStore> store = TensorStore::open(folder_);
    if (!store.ok()) return store.status();
    const int count = store->num_files();
    return TensorList{"safetensors, " + std::to_string(count) + (count == 1 ? " file" : " files"),
                      store->tensors()};
  }

  std::string tensor_name(const std::string& name) const override { return name; }

 private:
  std::string folder_;
};

/// Ascending.
std::vector<std::string> gguf_files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() == ".gguf") files.push_back(entry->path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

Expected<std::unique_ptr<ModelFiles>> open_model_files(const std::string& path) {
  std::error_code error;
  if (is_there(path) && !fs::is_directory(path, error)) return open_gguf_model_files(path);
  if (!is_there((fs::path(path) / "config.json").string())) {
    const std::vector<std::string> files = gguf_files_in(path);
    if (files.size() == 1) return open_gguf_model_files(files.front());
    if (!files.empty()) {
      return failed_precondition(path + ": no config.json, but " + std::to_string(files.size()) +
                                 " GGUF files; name one of them, such as " + files.front());
    }
  }
  return std::unique_ptr<ModelFiles>(std::make_unique<FolderFiles>(path));
}

}  // namespace anyslot::internal

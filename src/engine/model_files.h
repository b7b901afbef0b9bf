#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "model/config_outline.h"
#include "model/model_config.h"
#include "model/tensor_info.h"
#include "model/weight_source.h"
#include "text/chat_template.h"
#include "text/chat_template_source.h"
#include "text/tokenizer.h"

namespace anyslot::internal {

/// What the headers of a model's files say; no tensor is read.
struct TensorList {
  std::string format;  // for people
  std::vector<TensorInfo> tensors;
};

/// What a model consists of, whatever its files look like. All fail in one line that names the
/// file.
class ModelFiles {
 public:
  virtual ~ModelFiles() = default;

  /// For people.
  virtual std::string name() const = 0;
  /// max_model_len: see load_model_config.
  virtual Expected<ModelConfig> config(int64_t max_model_len) const = 0;
  /// Of a model of that config. May use `num_threads` threads while it loads.
  virtual Expected<std::unique_ptr<WeightSource>> weights(const ModelConfig& config,
                                                          int num_threads) const = 0;
  virtual Expected<std::optional<Tokenizer>> tokenizer() const = 0;
  /// None, too, when this build renders no chat templates.
  virtual Expected<std::optional<ChatTemplate>> chat_template() const = 0;
  /// What it is made from.
  virtual Expected<std::optional<ChatTemplateSource>> chat_template_source() const = 0;
  /// The file that may say how documents and a question become a prompt.
  virtual std::string rag_template_path() const = 0;

  /// Sizes of any model, for people. Fails where config() fails because nothing can be read at all.
  virtual Expected<ConfigOutline> outline() const = 0;
  virtual Expected<TensorList> tensors() const = 0;
  /// What the files call the tensor that a Hugging Face folder calls `name`.
  virtual std::string tensor_name(const std::string& name) const = 0;
};

/// `path`: a Hugging Face folder, a GGUF file, or a folder with one GGUF file and no config.json.
/// Fails with kNotFound or kFailedPrecondition.
Expected<std::unique_ptr<ModelFiles>> open_model_files(const std::string& path);

/// Broken links count, so that loading them is tried and fails with a reason.
bool is_there(const std::string& path);

}  // namespace anyslot::internal

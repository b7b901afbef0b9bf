#pragma once

#include <memory>

#include "anyslot/status.h"
#include "model/gguf/gguf_file.h"
#include "model/model_config.h"
#include "model/weight_source.h"

namespace anyslot {

/// The weights of a GGUF file under the names, and in the order of rows, that Hugging Face folders
/// of the family have. Plain numbers are handed out as the file has them, mapped where the order is
/// the same; blocks are decoded to float32, on `num_threads` threads, when they are asked for.
/// `config`: gguf_config of the file. Fails with kFailedPrecondition for a tensor that a model of
/// that config does not have, or whose type cannot be read.
Expected<std::unique_ptr<WeightSource>> gguf_weights(std::shared_ptr<const GgufFile> file,
                                                     const ModelConfig& config, int num_threads);

/// The tensors as the file's header describes them, their names ascending.
std::vector<TensorInfo> gguf_tensors(const GgufFile& file);

}  // namespace anyslot

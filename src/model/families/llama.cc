// LlamaForCausalLM: grouped-query attention, RMSNorm before each half of a layer, SwiGLU.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_llama_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {}, config);
  read_biases(reader, true, config);
}

ModelDescription describe_llama(const ModelConfig& config) { return describe_common(config); }

}  // namespace anyslot

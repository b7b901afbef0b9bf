// MistralForCausalLM: Llama's form, with a window in all layers.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_mistral_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.has_windows = true}, config);
  read_window(reader, kEveryLayer, config);
}

}  // namespace anyslot

#include "anyslot/tensor_file.h"

#include "model/safetensors_writer.h"

namespace anyslot {

Expected<std::string> float32_tensor_header(const std::string& name, std::span<const float> values,
                                            const std::vector<int64_t>& shape) {
  const NamedTensor tensor{name, shape, values};
  return safetensors_header(std::span(&tensor, 1));
}

}  // namespace anyslot

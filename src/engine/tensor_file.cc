#include "anyslot/tensor_file.h"

#include "model/safetensors_writer.h"

namespace anyslot {

Status write_float32_tensor(const std::string& path, const std::string& name,
                            std::span<const float> values, const std::vector<int64_t>& shape) {
  const NamedTensor tensor{name, shape, values};
  return write_safetensors(path, std::span(&tensor, 1));
}

}  // namespace anyslot

#include "model/safetensors_writer.h"

#include "model/json_file.h"
#include "model/safetensors_header.h"

namespace anyslot {

namespace {

Status check_shape(const NamedTensor& tensor) {
  size_t elements = 1;
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 0 ||
        __builtin_mul_overflow(elements, static_cast<size_t>(dimension), &elements)) {
      return invalid_argument("tensor " + quote_name(tensor.name) + ": shape " +
                              shape_text(tensor.shape) + " is not possible");
    }
  }
  if (elements == tensor.values.size()) return {};
  return invalid_argument("tensor " + quote_name(tensor.name) + ": shape " +
                          shape_text(tensor.shape) + " does not fit its " +
                          std::to_string(tensor.values.size()) + " values");
}

}  // namespace

Expected<std::string> safetensors_header(std::span<const NamedTensor> tensors) {
  nlohmann::json header = nlohmann::json::object();
  size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    if (Status status = check_shape(tensor); !status.ok()) return status;
    if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
      return invalid_argument("tensor " + quote_name(tensor.name) +
                              ": the name is reserved or stands twice");
    }
    const size_t end = offset + tensor.values.size_bytes();
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // keeps the data aligned
    const uint64_t length = text.size();
    text.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
    return text;
  } catch (const nlohmann::json::exception&) {
    return invalid_argument("a tensor's name is not valid UTF-8");
  }
}

}  // namespace anyslot

#include "model/architecture.h"

namespace anyslot {

namespace {

constexpr Architecture kArchitectures[] = {
    {"LlamaForCausalLM", read_llama_config, describe_llama},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
  }
  return nullptr;
}

std::string supported_architectures() {
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += architecture.name;
  }
  return names;
}

}  // namespace anyslot

#include "model/gguf/gguf_keys.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "model/json_file.h"

namespace anyslot {

std::string ArchitectureKeys::name(std::string_view key) {
  return *known_.insert(prefix_ + std::string(key)).first;
}

int64_t ArchitectureKeys::same_in_all_layers(std::string_view key) {
  const std::string whole = name(key);
  const auto entry = fields_->file().metadata().find(whole);
  const bool is_list =
      entry != fields_->file().metadata().end() && std::holds_alternative<GgufArray>(entry->second);
  if (!is_list) return fields_->integer(whole).value_or(0);
  const std::vector<int64_t> values = fields_->integers(whole);
  if (values.empty() ||
      std::ranges::count(values, values.front()) != static_cast<std::ptrdiff_t>(values.size())) {
    fields_->fail(whole, "differs from layer to layer, which is not supported");
    return 0;
  }
  const auto num_layers = fields_->integer(name("block_count")).value_or(0);
  if (std::ssize(values) != num_layers) {
    fields_->fail(whole, "has " + std::to_string(values.size()) + " elements for " +
                             std::to_string(num_layers) + " layers");
    return 0;
  }
  return values.front();
}

void ArchitectureKeys::refuse_others() const {
  for (const auto& [key, value] : fields_->file().metadata()) {
    if (!key.starts_with(prefix_) || known_.contains(key)) continue;
    fields_->fail(quote_name(key), "is set, and what it means is not known here");
  }
}

}  // namespace anyslot

#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "model/gguf/gguf_file.h"

namespace anyslot {

/// The keys that begin with the architecture's name. Which of them a reader knows is remembered.
class ArchitectureKeys {
 public:
  /// Both must outlive the object.
  ArchitectureKeys(const GgufFields& fields, std::string_view architecture)
      : fields_(&fields), prefix_(std::string(architecture) + ".") {}

  const GgufFields& fields() const { return *fields_; }
  /// The whole key, known from here on.
  std::string name(std::string_view key);
  /// A whole number, or a list of equal ones, one per layer. 0 for anything else, which fails.
  int64_t same_in_all_layers(std::string_view key);
  /// Fails for a key that nobody knew.
  void refuse_others() const;

 private:
  const GgufFields* fields_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace anyslot

#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/temporary_folder.h"

namespace anyslot::testing_support {

inline std::string golden_dir(const std::string& name) {
  return std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/" + name;
}

/// A copy of a tiny model with fields of its config.json replaced; null takes one away.
class ChangedModel {
 public:
  ChangedModel(const std::string& golden, const nlohmann::json& fields) {
    const std::string from = golden_dir(golden);
    nlohmann::json config = nlohmann::json::parse(read_bytes(from + "/config.json"));
    config.merge_patch(fields);
    folder_.write("config.json", config.dump());
    std::filesystem::copy(from + "/model.safetensors", path());
  }

  const std::string& path() const { return folder_.path(); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

}  // namespace anyslot::testing_support

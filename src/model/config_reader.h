#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// Reads the fields of a JSON object with limits. The first failure is kept in the caller's status,
/// later ones are dropped, so that a family reads all its fields and looks at the status once. A
/// field that is absent or null takes its fallback; without one it is an error. Values returned
/// after a failure are within their limits but mean nothing.
class ConfigReader {
 public:
  /// `where` (the file) begins every message. All three must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string where, Status& status);

  bool has(std::string_view key) const;
  /// Whether the field is there and says that there is nothing.
  bool is_null(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t min, int64_t max,
                  std::optional<int64_t> fallback = std::nullopt) const;
  /// min < value <= max.
  double number(std::string_view key, double min, double max,
                std::optional<double> fallback = std::nullopt) const;
  bool boolean(std::string_view key, bool fallback) const;
  /// An integer or a list of them; empty when absent.
  std::vector<int64_t> integers(std::string_view key, int64_t min, int64_t max) const;
  /// A list of numbers, min < value <= max; an error when absent.
  std::vector<double> numbers(std::string_view key, double min, double max) const;
  /// A list of strings; empty when absent.
  std::vector<std::string> texts(std::string_view key) const;
  /// The object under `key`; nullopt when absent.
  std::optional<ConfigReader> object(std::string_view key) const;

  /// The field when it is one of `allowed`.
  std::string_view one_of(std::string_view key, std::span<const std::string_view> allowed,
                          std::string_view fallback) const;
  void fail(std::string_view key, const std::string& what) const;
  bool ok() const { return status_->ok(); }

 private:
  const nlohmann::json* find(std::string_view key) const;

  const nlohmann::json* object_;
  std::string where_;
  Status* status_;
};

}  // namespace anyslot

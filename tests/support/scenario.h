#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "anyslot/config.h"

namespace anyslot::testing_support {

/// What an `ask` must find under some methods: an indented line.
struct ScenarioExpectation {
  std::vector<Method> methods;
  std::map<std::string, std::string> values;  // name of a document, "text" or "evictions" -> value
};

struct ScenarioCommand {
  int line = 0;
  std::string verb;
  std::vector<std::string> words;              // what follows it without '='
  std::map<std::string, std::string> options;  // and with '='
  int repetitions = 1;
  std::vector<ScenarioExpectation> expectations;

  std::string option(const std::string& name, const std::string& otherwise = "") const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
  bool has(const std::string& name) const { return options.contains(name); }
};

/// A file of tests/scenarios; see the README there.
struct Scenario {
  int64_t pool_blocks = 4000;
  std::map<std::string, int64_t> documents;  // tokens
  std::map<std::string, int64_t> texts;
  std::vector<ScenarioCommand> commands;
};

/// Throws std::runtime_error with the line for what it does not understand.
Scenario read_scenario(const std::string& path);

}  // namespace anyslot::testing_support

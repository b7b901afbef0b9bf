#include "support/scenario.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace anyslot::testing_support {

namespace {

const std::set<std::string> kVerbs{"ask",      "together", "end",   "flood",  "wait",
                                   "register", "pin",      "unpin", "remove", "list"};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<Method> methods_of(const std::string& word) {
  if (word == "all") return {std::begin(kAllMethods), std::end(kAllMethods)};
  if (word == "alone") return {Method::kLazy, Method::kBlock, Method::kMepic};
  const auto method = parse_method(word);
  if (!method.ok()) throw std::runtime_error(method.status().message());
  return {*method};
}

ScenarioExpectation read_expectation(std::vector<std::string> words) {
  ScenarioExpectation expectation;
  bool in_methods = true;
  for (std::string& word : words) {
    const size_t equals = word.find('=');
    if (in_methods && equals == std::string::npos) {
      if (word.ends_with(':')) {
        in_methods = false;
        word.pop_back();
      }
      for (const Method method : methods_of(word)) expectation.methods.push_back(method);
    } else if (!in_methods && equals != std::string::npos) {
      expectation.values[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      throw std::runtime_error("'" + word + "' is out of place");
    }
  }
  return expectation;
}

ScenarioCommand read_command(std::vector<std::string> words) {
  ScenarioCommand command;
  if (words.front() == "repeat") {
    command.repetitions = std::stoi(words.at(1));
    words.erase(words.begin(), words.begin() + 2);
  }
  command.verb = words.at(0);
  if (!kVerbs.contains(command.verb)) throw std::runtime_error("no command " + command.verb);
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      command.words.push_back(words[i]);
    } else {
      command.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
  }
  return command;
}

void read_line(Scenario& scenario, int number, const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty()) return;
  if (line.front() == ' ') {
    if (scenario.commands.empty()) throw std::runtime_error("no ask stands above");
    scenario.commands.back().expectations.push_back(read_expectation(words));
  } else if (words[0] == "pool") {
    if (!scenario.commands.empty()) throw std::runtime_error("pool must come first");
    scenario.pool_blocks = std::stoll(words.at(1));
  } else if (words[0] == "document") {
    scenario.documents[words.at(1)] = std::stoll(words.at(2));
  } else if (words[0] == "text") {
    scenario.texts[words.at(1)] = std::stoll(words.at(2));
  } else {
    scenario.commands.push_back(read_command(words));
    scenario.commands.back().line = number;
  }
}

}  // namespace

Scenario read_scenario(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  Scenario scenario;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      read_line(scenario, number, line);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  return scenario;
}

}  // namespace anyslot::testing_support

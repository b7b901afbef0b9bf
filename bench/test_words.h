#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace anyslot::bench {

/// The words of a command line that has no quotes.
inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

/// `anyslot bench BENCHMARK` over the bundled model on two threads, then more options.
inline std::vector<std::string> small_bench(const std::string& benchmark,
                                            const std::string& options) {
  std::vector<std::string> arguments = {"bench", benchmark, "--model", ANYSLOT_MODEL_DIR};
  for (std::string& word : words_of("--threads 2 --kv-cache 64MiB " + options)) {
    arguments.push_back(std::move(word));
  }
  return arguments;
}

}  // namespace anyslot::bench

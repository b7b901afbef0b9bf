// Prints how fast one core makes tokens of texts:  tokenizer_speed TOKENIZER.JSON TEXT-FILE...
// Each file counts by itself; of five runs the best is printed, in processor time. Measure on an
// idle machine.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "text/tokenizer.h"

namespace {

using anyslot::Tokenizer;

double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

bool measure(const Tokenizer& tokenizer, const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto first = tokenizer.encode(text);
  if (!file || !first || text.empty()) {
    std::fprintf(stderr, "error: %s: %s\n", path,
                 first ? "cannot be read, or is empty" : first.status().message().c_str());
    return false;
  }
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    best = std::min(best, seconds_of([&] { (void)tokenizer.encode(text); }));
  }
  std::printf("%-40s %10zu bytes %9zu tokens %8.1f MB/s\n", path, text.size(), first->size(),
              static_cast<double>(text.size()) / 1e6 / best);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tokenizer_speed TOKENIZER.JSON TEXT-FILE...\n");
    return 2;
  }
  const auto tokenizer = Tokenizer::load(argv[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "error: %s\n", tokenizer.status().message().c_str());
    return 1;
  }
  return std::all_of(argv + 2, argv + argc,
                     [&](const char* path) { return measure(*tokenizer, path); })
             ? 0
             : 1;
}

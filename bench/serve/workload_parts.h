#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "random.h"
#include "workload.h"

namespace anyslot::bench {

/// `count` common words with spaces between.
std::string random_words(int64_t count, RandomStream& random);

/// What the kinds of workload are made by; see make_workload().
using Requests = std::vector<WorkloadRequest>;
Expected<Requests> make_random(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                               const TextTraits& traits);
Expected<Requests> make_long_document(const WorkloadOptions& options, int num_prompts,
                                      uint64_t seed, const TextTraits& traits);
Expected<Requests> make_multi_round(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                                    const TextTraits& traits);
Expected<Requests> make_mooncake(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                                 const TextTraits& traits);

/// Each gives a request per row of the file, in the file's order.
Expected<Requests> read_rag_rows(const WorkloadOptions& options);
Expected<Requests> read_long_bench(const WorkloadOptions& options);
Expected<Requests> read_chat_rag(const WorkloadOptions& options);

/// An object of a file and its line (in a file that is one array, its place).
struct JsonRow {
  int line = 0;
  nlohmann::json object;
};

/// Reads JSON lines, or one array of objects. Fails with kInvalidArgument, naming file and line.
Expected<std::vector<JsonRow>> read_json_rows(const std::string& path);

/// "file:line: reason".
Status row_error(const std::string& path, int line, const std::string& reason);

/// The field as text, "" when it is missing or something else.
std::string text_field(const nlohmann::json& object, const char* key);
/// The texts of a field that is a list of strings, or of lists of them, or a string.
std::vector<std::string> texts_field(const nlohmann::json& object, const char* key);

/// Texts of about as many tokens as asked, or token ids where the target has no tokenizer.
class TextMaker {
 public:
  explicit TextMaker(const TextTraits& traits) : traits_(traits) {}
  void fill(int64_t tokens, RandomStream& random, std::string& text,
            std::vector<int32_t>& token_ids) const;

 private:
  TextTraits traits_;
};

}  // namespace anyslot::bench

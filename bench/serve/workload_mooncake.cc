#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "workload_parts.h"

namespace anyslot::bench {

namespace {

using nlohmann::json;

constexpr uint64_t kBlockStream = uint64_t{1} << 40;  // and those after it, one per hash

std::optional<int64_t> count_field(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number() || it->get<double>() < 0 || it->get<double>() > 1e15) {
    return std::nullopt;
  }
  return it->is_number_integer() ? it->get<int64_t>() : static_cast<int64_t>(it->get<double>());
}

/// The content of a block of a trace, by its hash alone.
struct BlockText {
  std::string text;
  std::vector<int32_t> token_ids;
};

BlockText block_text(int64_t hash, int64_t tokens, uint64_t seed, const TextMaker& maker) {
  RandomStream random(seed, kBlockStream + static_cast<uint64_t>(hash));
  BlockText block;
  maker.fill(tokens, random, block.text, block.token_ids);
  if (!block.text.empty()) block.text += '\n';
  return block;
}

}  // namespace

/// All whole blocks but the last are documents, named by their hashes; the rest is the question.
Expected<Requests> make_mooncake(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                                 const TextTraits& traits) {
  const Expected<std::vector<JsonRow>> rows = read_json_rows(options.dataset_path);
  if (!rows) return rows.status();
  const TextMaker maker(traits);
  Requests requests;
  for (const auto& [line, object] : *rows) {
    if (static_cast<int>(requests.size()) == num_prompts) break;
    const auto timestamp = count_field(object, "timestamp");
    const auto input = count_field(object, "input_length");
    const auto output = count_field(object, "output_length");
    const auto hashes = object.find("hash_ids");
    if (!timestamp || !input || !output || hashes == object.end() || !hashes->is_array() ||
        hashes->empty() || *input < 1) {
      return row_error(options.dataset_path, line,
                       "a trace needs timestamp, input_length, output_length and hash_ids");
    }
    WorkloadRequest request;
    request.id = fmt::format("t{}", line);
    request.arrival_seconds = static_cast<double>(*timestamp) / 1e3 * options.time_scale;
    request.max_tokens = static_cast<int>(std::clamp<int64_t>(*output, 1, 1 << 20));
    request.ignore_eos = options.ignore_eos;
    int64_t left = *input;
    WorkloadMessage question;
    for (size_t i = 0; i < hashes->size() && left > 0; ++i) {
      if (!(*hashes)[i].is_number_integer()) {
        return row_error(options.dataset_path, line, "\"hash_ids\" must hold integers");
      }
      const auto hash = (*hashes)[i].get<int64_t>();
      const bool last = i + 1 == hashes->size() || left <= options.trace_block_len;
      const int64_t tokens = last ? left : options.trace_block_len;
      BlockText block = block_text(hash, tokens, seed, maker);
      left -= tokens;
      if (last) {
        question = {ChatRole::kUser, std::move(block.text), std::move(block.token_ids)};
      } else {
        request.documents.push_back({std::nullopt, std::move(block.text), fmt::format("h{}", hash),
                                     std::move(block.token_ids)});
      }
    }
    request.messages.push_back(std::move(question));
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace anyslot::bench

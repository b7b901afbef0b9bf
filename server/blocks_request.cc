#include "blocks_request.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sampling_fields.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr int kDefaultTokens = 2048;  // as that server generates at most

std::vector<std::string> read_blocks(RequestFields& fields) {
  std::vector<std::string> blocks;
  fields.require("blocks");
  const json* list = fields.array("blocks");
  if (list == nullptr) return blocks;
  if (list->empty()) fields.fail("blocks", "is empty; the last block is the question");
  for (size_t i = 0; fields.ok() && i < list->size(); ++i) {
    const json& block = (*list)[i];
    if (!block.is_string() || block.get_ref<const std::string&>().empty()) {
      const std::string where = "blocks[" + std::to_string(i) + "]";
      fields.fail({400, where + ": must be a text that is not empty", where});
      break;
    }
    blocks.push_back(block.get<std::string>());
  }
  return blocks;
}

/// Keeps the first `num_local` blocks; the rest become the last one.
void join_behind(size_t num_local, std::vector<std::string>& blocks) {
  if (blocks.size() <= num_local + 1) return;
  for (size_t i = num_local + 1; i < blocks.size(); ++i) blocks[num_local] += blocks[i];
  blocks.resize(num_local + 1);
}

/// That server's, where the request names none.
void set_default_stops(RequestFields& fields, SamplingParams& sampling) {
  if (fields.find("stop") != nullptr) return;
  sampling.stop = {"<|im_end|>",    "<|eot_id|>", "<|end_of_text|>",
                   "<|endoftext|>", "</s>",       "Question:"};
}

}  // namespace

ApiExpected<AnswerRequest> parse_blocks_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  std::vector<std::string> blocks = read_blocks(fields);
  if (const auto num_local = fields.integer("num_local_attention_blocks")) {
    join_behind(static_cast<size_t>(*num_local), blocks);
  }
  if (!blocks.empty()) {
    check_document_count(fields, "blocks", blocks.size() - 1, rules.max_documents);
  }
  if (fields.find("model") != nullptr) check_model(fields, rules.model);
  read_sampling(fields, request.sampling);
  if (fields.find("temperature") == nullptr) request.sampling.temperature = 0;
  set_default_stops(fields, request.sampling);
  if (request.sampling.n != 1) fields.fail("n", "is not supported: the answer is one text");
  const auto max_tokens = fields.integer("max_tokens", 1);
  request.fit_max_tokens = !max_tokens.has_value();
  request.sampling.max_tokens = static_cast<int>(
      max_tokens.value_or(std::max<int64_t>(kDefaultTokens, request.sampling.min_tokens)));
  request.stream = fields.boolean("stream").value_or(false);
  read_own_fields(fields, request);
  if (auto error = fields.finish()) return *std::move(error);

  // The caller writes the whole prompt, template and all.
  request.texts_have_markup = true;
  request.documents_alone = true;
  request.input = Prompt{std::move(blocks.back()), "blocks"};
  blocks.pop_back();
  for (size_t i = 0; i < blocks.size(); ++i) {
    DocumentInput& input = request.documents.emplace_back();
    input.name = "blocks[" + std::to_string(i) + "]";
    input.document.text = std::move(blocks[i]);
  }
  request.num_leading = request.documents.size();
  return request;
}

}  // namespace anyslot::server

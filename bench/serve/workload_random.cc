#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "workload_parts.h"

namespace anyslot::bench {

namespace {

// Streams of random numbers, so that the pool does not depend on the number of requests.
constexpr uint64_t kRequestStream = 2;
constexpr uint64_t kQuestionStream = 3;
constexpr uint64_t kDocumentStream = uint64_t{1} << 32;  // and those after it, one per document

/// A length within +- ratio of `mean`, at least 1.
int64_t drawn_length(int mean, double ratio, RandomStream& random) {
  const auto spread = static_cast<int64_t>(std::floor(mean * ratio));
  return std::max<int64_t>(1, random.between(mean - spread, mean + spread));
}

std::vector<WorkloadDocument> make_pool(const WorkloadOptions& options, uint64_t seed,
                                        const TextMaker& maker) {
  std::vector<WorkloadDocument> pool;
  for (int i = 0; i < options.num_documents; ++i) {
    RandomStream random(seed, kDocumentStream + static_cast<uint64_t>(i));
    WorkloadDocument document;
    document.title = fmt::format("Document {}", i);
    document.id = fmt::format("d{}", i);
    maker.fill(drawn_length(options.document_len, options.random_range_ratio, random), random,
               document.text, document.token_ids);
    pool.push_back(std::move(document));
  }
  return pool;
}

WorkloadMessage make_question(const WorkloadOptions& options, const TextMaker& maker,
                              RandomStream& random) {
  WorkloadMessage message;
  maker.fill(drawn_length(options.question_len, options.random_range_ratio, random), random,
             message.content, message.token_ids);
  return message;
}

WorkloadRequest make_request(const WorkloadOptions& options, size_t number, RandomStream& random) {
  WorkloadRequest request;
  request.id = fmt::format("r{}", number);
  request.max_tokens =
      static_cast<int>(drawn_length(options.output_len, options.random_range_ratio, random));
  request.ignore_eos = options.ignore_eos;
  return request;
}

Status check_pool(const WorkloadOptions& options) {
  if (options.documents_per_prompt <= options.num_documents) return {};
  return invalid_argument(fmt::format(
      "{} different documents per prompt cannot be drawn from a pool of {}; raise --num-documents",
      options.documents_per_prompt, options.num_documents));
}

/// Draws the documents of a request from the pool.
class PoolDraw {
 public:
  PoolDraw(const WorkloadOptions& options, uint64_t seed, const TextMaker& maker)
      : options_(options),
        pool_(make_pool(options, seed, maker)),
        choice_(pool_.size(), options.choice == DocumentChoice::kZipf ? options.zipf : 0) {}

  std::vector<WorkloadDocument> draw(RandomStream& random) const {
    std::vector<size_t> numbers =
        choice_.draw_different(static_cast<size_t>(options_.documents_per_prompt), random);
    if (options_.order == DocumentOrder::kFixed) {
      std::ranges::sort(numbers);
    } else {
      random.shuffle(numbers);  // what is popular was drawn early
    }
    std::vector<WorkloadDocument> documents;
    for (const size_t number : numbers) documents.push_back(pool_[number]);
    return documents;
  }

 private:
  const WorkloadOptions& options_;
  std::vector<WorkloadDocument> pool_;
  RankedChoice choice_;
};

}  // namespace

void TextMaker::fill(int64_t tokens, RandomStream& random, std::string& text,
                     std::vector<int32_t>& token_ids) const {
  if (traits_.takes_text) {
    const double words = static_cast<double>(tokens) / std::max(traits_.tokens_per_word, 0.01);
    text = random_words(std::max<int64_t>(1, std::llround(words)), random);
    return;
  }
  const auto vocab = static_cast<uint64_t>(std::max<int64_t>(traits_.vocab_size, 1));
  for (int64_t i = 0; i < tokens; ++i) {
    token_ids.push_back(static_cast<int32_t>(random.below(vocab)));
  }
}

Expected<Requests> make_random(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                               const TextTraits& traits) {
  if (Status status = check_pool(options); !status.ok()) return status;
  const TextMaker maker(traits);
  const PoolDraw pool(options, seed, maker);
  RandomStream random(seed, kRequestStream);
  RandomStream questions(seed, kQuestionStream);
  Requests requests;
  for (int i = 0; i < num_prompts; ++i) {
    WorkloadRequest request = make_request(options, requests.size(), random);
    request.documents = pool.draw(random);
    request.messages.push_back(make_question(options, maker, questions));
    requests.push_back(std::move(request));
  }
  return requests;
}

Expected<Requests> make_long_document(const WorkloadOptions& options, int num_prompts,
                                      uint64_t seed, const TextTraits& traits) {
  WorkloadOptions all = options;
  all.num_documents = options.documents_per_prompt;
  const TextMaker maker(traits);
  const std::vector<WorkloadDocument> pool = make_pool(all, seed, maker);
  RandomStream random(seed, kRequestStream);
  RandomStream questions(seed, kQuestionStream);
  double orders = 1;
  for (size_t i = 2; i <= pool.size(); ++i) orders *= static_cast<double>(i);
  std::set<std::vector<size_t>> seen;
  Requests requests;
  for (int i = 0; i < num_prompts; ++i) {
    WorkloadRequest request = make_request(options, requests.size(), random);
    std::vector<size_t> order(pool.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    if (options.order != DocumentOrder::kFixed) {
      if (static_cast<double>(seen.size()) >= orders) seen.clear();  // all have come
      do random.shuffle(order);
      while (!seen.insert(order).second);
    }
    for (const size_t number : order) request.documents.push_back(pool[number]);
    request.messages.push_back(make_question(options, maker, questions));
    requests.push_back(std::move(request));
  }
  return requests;
}

Expected<Requests> make_multi_round(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                                    const TextTraits& traits) {
  if (Status status = check_pool(options); !status.ok()) return status;
  if (!traits.takes_text) {
    return invalid_argument("conversations need a model with a tokenizer and a template");
  }
  const TextMaker maker(traits);
  const PoolDraw pool(options, seed, maker);
  RandomStream random(seed, kRequestStream);
  RandomStream questions(seed, kQuestionStream);
  const int conversations = (num_prompts + options.rounds - 1) / options.rounds;
  Requests requests;
  for (int i = 0; i < num_prompts; ++i) {  // the first rounds of all, then the second ones
    WorkloadRequest request = make_request(options, requests.size(), random);
    if (i < conversations) {
      request.documents = pool.draw(random);
    } else {
      request.follows = static_cast<size_t>(i - conversations);
    }
    request.messages.push_back(make_question(options, maker, questions));
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace anyslot::bench

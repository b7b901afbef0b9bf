#include "engine/check_sampling.h"

#include <fmt/format.h>

#include <set>

#include "text/utf8.h"

namespace anyslot::internal {

namespace {

/// NaN is in no range.
Status check_range(std::string_view name, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(
             fmt::format("{} is {}; it must be between {} and {}", name, value, low, high))
      .about(std::string(name));
}

Status check_count(std::string_view name, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(
             fmt::format("{} is {}; it must be between {} and {}", name, value, low, high))
      .about(std::string(name));
}

Status check_token_id(std::string_view name, int32_t id, const EngineParts& parts) {
  if (id >= 0 && id < parts.model.vocab_size) return {};
  return invalid_argument(fmt::format("{}: token id {} is not in the vocabulary of {} tokens", name,
                                      id, parts.model.vocab_size))
      .about(std::string(name));
}

Status check_distribution(const SamplingParams& sampling) {
  if (!(sampling.top_p > 0.0F && sampling.top_p <= 1.0F)) {
    return invalid_argument(
               fmt::format("top_p is {}; it must be above 0 and at most 1", sampling.top_p))
        .about("top_p");
  }
  if (sampling.top_k < 0) {
    return invalid_argument(fmt::format("top_k is {}; it must be 0 (off) or more", sampling.top_k))
        .about("top_k");
  }
  for (Status status : {check_range("temperature", sampling.temperature, 0, 100),
                        check_range("min_p", sampling.min_p, 0, 1),
                        check_range("repetition_penalty", sampling.repetition_penalty, 0.01F, 100),
                        check_range("presence_penalty", sampling.presence_penalty, -2, 2),
                        check_range("frequency_penalty", sampling.frequency_penalty, -2, 2)}) {
    if (!status.ok()) return status;
  }
  return {};
}

Status check_bias(const SamplingParams& sampling, const EngineParts& parts) {
  if (sampling.logit_bias.size() > kMaxLogitBiases) {
    return invalid_argument(fmt::format("logit_bias has {} entries; at most {} are allowed",
                                        sampling.logit_bias.size(), kMaxLogitBiases))
        .about("logit_bias");
  }
  for (const auto& [id, bias] : sampling.logit_bias) {
    Status status = check_token_id("logit_bias", id, parts);
    if (status.ok()) {
      status = check_range(fmt::format("logit_bias of token {}", id), bias, -100, 100);
    }
    if (!status.ok()) return std::move(status).about("logit_bias");
  }
  return {};
}

Status check_lengths(const SamplingParams& sampling, const EngineParts& parts) {
  if (sampling.max_tokens < 1) {
    return invalid_argument(
               fmt::format("max_tokens is {}; it must be at least 1", sampling.max_tokens))
        .about("max_tokens");
  }
  if (sampling.min_tokens < 0 || sampling.min_tokens > sampling.max_tokens) {
    return invalid_argument(fmt::format("min_tokens is {}; it must be between 0 and max_tokens, {}",
                                        sampling.min_tokens, sampling.max_tokens))
        .about("min_tokens");
  }
  std::set<int32_t> stops(sampling.stop_token_ids.begin(), sampling.stop_token_ids.end());
  if (!sampling.ignore_eos) stops.insert(parts.stop_token_ids.begin(), parts.stop_token_ids.end());
  if (sampling.min_tokens > 0 && static_cast<int64_t>(stops.size()) >= parts.model.vocab_size) {
    return invalid_argument(
               fmt::format(
                   "min_tokens is {}, but every token of the vocabulary is a stop token; leave "
                   "some out of stop_token_ids",
                   sampling.min_tokens))
        .about("min_tokens");
  }
  return {};
}

Status check_stop_string(const std::string& stop, size_t index) {
  if (stop.empty()) return invalid_argument(fmt::format("stop string {} is empty", index));
  if (stop.size() > kMaxStopStringBytes) {
    return invalid_argument(fmt::format("stop string {} has {} bytes; at most {} are allowed",
                                        index, stop.size(), kMaxStopStringBytes));
  }
  if (const auto offset = find_invalid_utf8(stop)) {
    return invalid_argument(
        fmt::format("stop string {} is not UTF-8: invalid at byte {}", index, *offset + 1));
  }
  return {};
}

Status check_stops(const SamplingParams& sampling, const EngineParts& parts) {
  if (sampling.stop_token_ids.size() > kMaxStopTokens) {
    return invalid_argument(fmt::format("there are {} stop tokens; at most {} are allowed",
                                        sampling.stop_token_ids.size(), kMaxStopTokens))
        .about("stop_token_ids");
  }
  for (const int32_t id : sampling.stop_token_ids) {
    Status status = check_token_id("stop_token_ids", id, parts);
    if (!status.ok()) return status;
  }
  if (sampling.stop.empty()) return {};
  if (parts.tokenizer == nullptr) {
    return failed_precondition(
               "stop strings need the text of the answer, but the model has no tokenizer.json; use "
               "stop_token_ids")
        .about("stop");
  }
  if (sampling.stop.size() > kMaxStopStrings) {
    return invalid_argument(fmt::format("there are {} stop strings; at most {} are allowed",
                                        sampling.stop.size(), kMaxStopStrings))
        .about("stop");
  }
  for (size_t i = 0; i < sampling.stop.size(); ++i) {
    Status status = check_stop_string(sampling.stop[i], i);
    if (!status.ok()) return std::move(status).about("stop");
  }
  return {};
}

Status check_logprobs(const SamplingParams& sampling) {
  if (sampling.top_logprobs != 0 && !sampling.logprobs) {
    return invalid_argument(fmt::format("top_logprobs is {}, but logprobs is off; turn it on",
                                        sampling.top_logprobs))
        .about("top_logprobs");
  }
  return check_count("top_logprobs", sampling.top_logprobs, 0, kMaxTopLogprobs);
}

}  // namespace

Status check_sampling(const SamplingParams& sampling, const EngineParts& parts) {
  Status status = check_distribution(sampling);
  if (status.ok()) status = check_bias(sampling, parts);
  if (status.ok()) status = check_count("n", sampling.n, 1, kMaxChoices);
  if (status.ok()) status = check_stops(sampling, parts);
  if (status.ok()) status = check_lengths(sampling, parts);
  if (status.ok()) status = check_logprobs(sampling);
  return status;
}

}  // namespace anyslot::internal

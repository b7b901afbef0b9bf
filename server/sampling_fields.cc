#include "sampling_fields.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

void read_stop_tokens(RequestFields& fields, SamplingParams& sampling) {
  const json* ids = fields.array("stop_token_ids");
  if (ids == nullptr) return;
  fields.check_size("stop_token_ids", *ids, kMaxStopTokens);
  if (!fields.ok()) return;
  for (const json& id : *ids) {
    if (!is_token_id(id)) {
      fields.fail("stop_token_ids", "must hold token ids");
      return;
    }
    sampling.stop_token_ids.push_back(id.get<int32_t>());
  }
}

/// {"1234": -5}: keys of JSON objects are strings.
void read_bias(RequestFields& fields, SamplingParams& sampling) {
  const json* bias = fields.object("logit_bias");
  if (bias == nullptr) return;
  fields.check_size("logit_bias", *bias, kMaxLogitBiases);
  if (!fields.ok()) return;
  for (const auto& entry : bias->items()) {
    const std::string& key = entry.key();
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || !entry.value().is_number()) {
      fields.fail("logit_bias", "must map token ids to numbers, as {\"1234\": -5}");
      return;
    }
    // The engine tells what is out of range.
    const double value = entry.value().get<double>();
    sampling.logit_bias[id] = std::abs(value) < kLargest ? static_cast<float>(value) : kLargest;
  }
}

}  // namespace

void read_seed(RequestFields& fields, SamplingParams& sampling) {
  const json* seed = fields.find("seed");
  if (seed == nullptr) {
    sampling.seed = random_seed();
  } else if (seed->is_number_integer()) {
    sampling.seed = seed->is_number_unsigned() ? seed->get<uint64_t>()
                                               : static_cast<uint64_t>(seed->get<int64_t>());
  } else {
    fields.fail("seed", std::string("must be a whole number, not ") + seed->type_name());
  }
}

void read_float(RequestFields& fields, const std::string& key, float& value) {
  const auto number = fields.number(key);
  if (!number) return;
  if (std::abs(*number) > double{kLargest}) {
    fields.fail(key, "is " + fields.find(key)->dump() + ", which no 32-bit float can be");
    return;
  }
  value = static_cast<float>(*number);
}

void read_stop_strings(RequestFields& fields, const std::string& key, SamplingParams& sampling) {
  const json* stop = fields.find(key);
  if (stop == nullptr) return;
  if (stop->is_string()) {
    sampling.stop.push_back(stop->get<std::string>());
    return;
  }
  if (!stop->is_array()) {
    fields.fail(key, std::string("must be a string or an array of them, not ") + stop->type_name());
    return;
  }
  fields.check_size(key, *stop, kMaxStopStrings);
  if (!fields.ok()) return;
  for (const json& text : *stop) {
    if (!text.is_string()) {
      fields.fail(key, std::string("must hold strings, not ") + text.type_name());
      return;
    }
    sampling.stop.push_back(text.get<std::string>());
  }
}

void read_sampling(RequestFields& fields, SamplingParams& sampling) {
  sampling.temperature = 1.0F;
  read_float(fields, "temperature", sampling.temperature);
  read_float(fields, "top_p", sampling.top_p);
  read_float(fields, "min_p", sampling.min_p);
  read_float(fields, "repetition_penalty", sampling.repetition_penalty);
  read_float(fields, "presence_penalty", sampling.presence_penalty);
  read_float(fields, "frequency_penalty", sampling.frequency_penalty);
  if (const auto top_k = fields.integer("top_k", -1)) {
    sampling.top_k = *top_k < 0 ? 0 : static_cast<int>(*top_k);  // -1 is off, too
  }
  sampling.n = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  sampling.min_tokens = static_cast<int>(fields.integer("min_tokens").value_or(0));
  sampling.include_stop_in_output = fields.boolean("include_stop_str_in_output").value_or(false);
  sampling.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  read_seed(fields, sampling);
  read_stop_strings(fields, "stop", sampling);
  read_stop_tokens(fields, sampling);
  read_bias(fields, sampling);
}

}  // namespace anyslot::server

#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "open_engine.h"
#include "sizes.h"

namespace anyslot::cli {
namespace {

constexpr const char* kEngineGroup = "Engine options";
constexpr const char* kSamplingGroup = "Sampling options";

/// An option whose text `parse` turns into a value; its Status becomes the message of a wrong call.
template <typename Parse, typename Store>
CLI::Option* add_parsed_option(CLI::App& command, const std::string& name, const std::string& type,
                               const std::string& help, Parse parse, Store store) {
  return command
      .add_option_function<std::string>(
          name,
          [name, parse, store](const std::string& text) {
            auto value = parse(text);
            if (!value.ok()) throw CLI::ValidationError(name, value.status().message());
            store(*value);
          },
          help)
      ->type_name(type);
}

template <typename T>
std::optional<T> whole_number(const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

CLI::Validator existing_file() {
  return {[](const std::string& path) {
            std::error_code error;
            return std::filesystem::is_regular_file(path, error)
                       ? std::string()
                       : fmt::format("there is no file \"{}\"", path);
          },
          ""};
}

CLI::Validator one_of(std::vector<std::string> names) {
  return {[names = std::move(names)](const std::string& text) {
            return std::find(names.begin(), names.end(), text) != names.end()
                       ? std::string()
                       : fmt::format("\"{}\" is not one of {}", text, fmt::join(names, ", "));
          },
          ""};
}

CLI::Validator existing_model() {
  return {[](const std::string& path) { return check_model_path(path).message(); }, ""};
}

CLI::Validator between(int64_t minimum, int64_t maximum) {
  return {[minimum, maximum](const std::string& text) {
            const std::optional<int64_t> value = whole_number<int64_t>(text);
            if (value && *value >= minimum && *value <= maximum) return std::string();
            return fmt::format("\"{}\" is not a whole number from {} to {}", text, minimum,
                               maximum);
          },
          ""};
}

CLI::Validator at_least(int64_t minimum) {
  return between(minimum, std::numeric_limits<int>::max());
}

CLI::Option* add_kv_cache_type_option(CLI::App& command, KvCacheType& type) {
  return add_parsed_option(
      command, "--kv-cache-dtype", "T",
      "type of cached keys and values: auto (as --dtype says), or fp8 (fp8_e4m3; "
      "not on a GPU): half of bfloat16's memory, slightly other results "
      "(default: auto)",
      parse_kv_cache_type, [&type](KvCacheType parsed) { type = parsed; });
}

CLI::Option* add_kv_cache_option(CLI::App& command, const std::string& help, int64_t& bytes) {
  return add_parsed_option(command, "--kv-cache", "SIZE", help, parse_size,
                           [&bytes](int64_t parsed) { bytes = parsed; })
      ->check([](const std::string& text) {
        const Expected<int64_t> parsed = parse_size(text);
        return parsed.ok() && *parsed == 0 ? std::string("the KV pool cannot have 0 bytes") : "";
      });
}

CLI::Validator is_seed() {
  return {[](const std::string& text) {
            return whole_number<uint64_t>(text)
                       ? std::string()
                       : fmt::format("\"{}\" is not a whole number from 0 to 2^64 - 1", text);
          },
          ""};
}

CLI::Validator number_where(const std::function<bool(double)>& fits, const std::string& range) {
  return {[fits, range](const std::string& text) {
            double value = 0;
            if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value) || !fits(value)) {
              return fmt::format("\"{}\" is not a number {}", text, range);
            }
            return std::string();
          },
          ""};
}

namespace {

void add_machine_options(CLI::App& command, EngineConfig& config) {
  command
      .add_option("--threads", config.num_threads,
                  "CPU threads (default: one per physical core, within the CPU quota)")
      ->type_name("N")
      ->check(at_least(1))
      ->group(kEngineGroup);
  add_kv_cache_option(command,
                      "memory of the KV pool, as 512MiB or 4GiB (default: on a GPU as "
                      "--gpu-memory-utilization says, else a quarter of the free memory, at most "
                      "4GiB)",
                      config.kv_cache_bytes)
      ->group(kEngineGroup);
  command
      .add_option(
          "--device", config.device,
          "\"cpu\", \"cuda\": the first NVIDIA GPU, or \"reference\": plain scalar code, slow "
          "(default: cpu)")
      ->type_name("NAME")
      ->check(one_of({"cpu", "cuda", "reference"}))
      ->group(kEngineGroup);
  command
      .add_option("--gpu-memory-utilization", config.gpu_memory_utilization,
                  "with --device cuda and without --kv-cache: the share of the GPU's memory that "
                  "weights, working memory and the KV pool take together (default: 0.9)")
      ->type_name("X")
      ->check(number_where([](double x) { return x > 0 && x <= 1; }, "above 0 and at most 1"))
      ->group(kEngineGroup);
  command
      .add_option("--isa", config.max_isa,
                  "the highest instruction set to use: avx2, avx512, avx512_bf16, or of a GPU "
                  "sm_80, sm_90a "
                  "(default: the best that the machine has)")
      ->type_name("NAME")
      ->check(one_of({"avx2", "avx512", "avx512_bf16", "sm_80", "sm_90a"}))
      ->group(kEngineGroup);
  command
      .add_option("--trace", config.trace_path,
                  "write the engine's steps and their operations as a Chrome trace, for "
                  "chrome://tracing or ui.perfetto.dev")
      ->type_name("FILE")
      ->check([](const std::string& path) {
        return path == "-" ? std::string("a trace needs a file of its own") : "";
      })
      ->group(kEngineGroup);
  command
      .add_flag(
          "--ignore-placement-angles", config.ignore_placement_angles,
          "a control for experiments, method lazy only: documents keep the angles of position "
          "0 wherever they stand, so answers get worse (default: off)")
      ->group(kEngineGroup);
}

void add_method_option(CLI::App& command, EngineConfig& config) {
  add_parsed_option(
      command, "--method", "M",
      "how documents become KV: lazy, block, mepic, prefix or full (default: lazy for a "
      "model trained with block attention, else prefix)",
      parse_method, [&config](Method method) { config.method = method; })
      ->group(kEngineGroup);
}

void add_serving_options(CLI::App& command, EngineConfig& config) {
  add_parsed_option(command, "--dtype", "D",
                    "type of weights, activations and KV: bfloat16, float16 (on a GPU and in the "
                    "reference) or float32 (default: bfloat16)",
                    parse_compute_type, [&config](ComputeType type) { config.dtype = type; })
      ->group(kEngineGroup);
  add_parsed_option(command, "--weights", "W",
                    "int8 keeps the weights of linear layers as whole numbers with a scale per "
                    "output channel: half the memory and faster answers, slightly other results; "
                    "dtype keeps them as --dtype says (default: dtype)",
                    parse_weight_type, [&config](WeightType type) { config.weights = type; })
      ->group(kEngineGroup);
  add_kv_cache_type_option(command, config.kv_cache_dtype)->group(kEngineGroup);
  command
      .add_option("--max-model-len", config.max_model_len,
                  "tokens of prompt and answer together, at most (default: what the model was "
                  "trained for)")
      ->type_name("N")
      ->check(at_least(1))
      ->group(kEngineGroup);
  command
      .add_option("--max-running-requests,--max-requests", config.max_running_requests,
                  "requests in one batch, at most (default: 64)")
      ->type_name("N")
      ->check(at_least(1))
      ->group(kEngineGroup);
  command
      .add_option("--max-batch-tokens", config.max_batch_tokens,
                  "tokens computed in one step, at most (default: 2048)")
      ->type_name("N")
      ->check(at_least(1))
      ->group(kEngineGroup);
  command
      .add_flag("--mepic-recompute-first-block", config.mepic_recompute_first_block,
                "method mepic: compute the first 16 tokens of each document in its place (default: "
                "off)")
      ->group(kEngineGroup);
}

}  // namespace

namespace {

CLI::Option* add_optional_model_option(CLI::App& command, EngineConfig& config) {
  return command
      .add_option("--model", config.model_path,
                  "a GGUF file, or the folder of a Hugging Face model: config.json, *.safetensors, "
                  "tokenizer.json; beside either, rag_template.json")
      ->type_name("PATH")
      ->check(existing_model());
}

/// --model or --random-weights.
void add_model_options(CLI::App& command, EngineConfig& config) {
  CLI::Option* model = add_optional_model_option(command, config);
  command
      .add_option("--random-weights", config.random_weights_config,
                  "instead of --model: a config.json; its weights are random, always the same, and "
                  "it has no tokenizer: for measuring any shape without a checkpoint")
      ->type_name("FILE")
      ->check(existing_file())
      ->excludes(model);
  command
      .add_option("--tokenizer", config.tokenizer_path,
                  "with --random-weights: a model's folder or GGUF file whose tokenizer and "
                  "templates take texts (default: none, so requests give token ids)")
      ->type_name("PATH")
      ->check(existing_model());
  command.parse_complete_callback([&config] {
    if (config.model_path.empty() && config.random_weights_config.empty()) {
      throw CLI::RequiredError("--model");
    }
  });
}

}  // namespace

void add_model_option(CLI::App& command, EngineConfig& config) {
  add_optional_model_option(command, config)->required();
}

void add_engine_options(CLI::App& command, EngineConfig& config, EngineOptionSet set) {
  if (set != EngineOptionSet::kMeasuring) {
    if (set != EngineOptionSet::kAnyTarget) add_model_options(command, config);
    if (set == EngineOptionSet::kServing) add_method_option(command, config);
    add_serving_options(command, config);
  }
  add_machine_options(command, config);
}

namespace {

CLI::Option* add_sampling_number(CLI::App& command, const std::string& name,
                                 const std::string& type, float& value, const std::string& help) {
  return command.add_option(name, value, help)->type_name(type)->group(kSamplingGroup);
}

void add_distribution_options(CLI::App& command, SamplingParams& sampling) {
  add_sampling_number(command, "--temperature", "T", sampling.temperature,
                      "0 takes the likeliest token; higher values vary more (default: 0)")
      ->check(number_where([](double t) { return t >= 0 && t <= 100; }, "from 0 to 100"));
  add_sampling_number(
      command, "--top-p", "P", sampling.top_p,
      "draw from the likeliest tokens whose probabilities sum to P (default: 1, all)")
      ->check(number_where([](double p) { return p > 0 && p <= 1; }, "above 0 and at most 1"));
  command
      .add_option("--top-k", sampling.top_k,
                  "draw from the K likeliest tokens; 0: all (default: 0)")
      ->type_name("K")
      ->check(at_least(0))
      ->group(kSamplingGroup);
  add_sampling_number(command, "--min-p", "P", sampling.min_p,
                      "draw from tokens at least P times as likely as the likeliest (default: 0)")
      ->check(number_where([](double p) { return p >= 0 && p <= 1; }, "from 0 to 1"));
  command
      .add_option("--seed", sampling.seed,
                  "seed of the random numbers; an answer depends on it and the request alone "
                  "(default: 0)")
      ->type_name("S")
      ->check(is_seed())
      ->group(kSamplingGroup);
}

void add_penalty_options(CLI::App& command, SamplingParams& sampling) {
  add_sampling_number(command, "--repetition-penalty", "R", sampling.repetition_penalty,
                      "above 1, tokens of the prompt and the answer become less likely: positive "
                      "logits are divided by R, negative ones multiplied (default: 1)")
      ->check(number_where([](double r) { return r >= 0.01 && r <= 100; }, "from 0.01 to 100"));
  const auto check_penalty =
      number_where([](double p) { return p >= -2 && p <= 2; }, "from -2 to 2");
  add_sampling_number(command, "--presence-penalty", "N", sampling.presence_penalty,
                      "subtracted from the logits of tokens that stand in the answer (default: 0)")
      ->check(check_penalty);
  add_sampling_number(command, "--frequency-penalty", "N", sampling.frequency_penalty,
                      "subtracted for each time that a token stands in the answer (default: 0)")
      ->check(check_penalty);
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingParams& sampling) {
  command
      .add_option(
          "--max-tokens", sampling.max_tokens,
          "tokens to generate per answer, at most; --max-model-len may end an answer sooner "
          "(default: 64)")
      ->type_name("N")
      ->check(at_least(1))
      ->group(kSamplingGroup);
  command
      .add_option("--min-tokens", sampling.min_tokens,
                  "tokens to generate before anything stops the answer (default: 0)")
      ->type_name("N")
      ->check(at_least(0))
      ->group(kSamplingGroup);
  command
      .add_option("--stop", sampling.stop,
                  "a text that ends the answer and is not part of it (repeatable)")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group(kSamplingGroup);
  add_distribution_options(command, sampling);
  add_penalty_options(command, sampling);
}

}  // namespace anyslot::cli

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/request.h"

namespace anyslot::cli {

/// Which options of EngineConfig a command offers.
enum class EngineOptionSet {
  kServing,    // all of them; --model or --random-weights is required
  kBenchmark,  // the same without --method
  kAnyTarget,  // the same without --model and --random-weights, which the command adds itself
  kMeasuring   // the command itself chooses model, method and type: machine options only
};

/// Adds the engine's options to a command; parsing writes them to `config`, which must outlive it.
void add_engine_options(CLI::App& command, EngineConfig& config, EngineOptionSet set);

// Their messages are ours, and they add nothing to the names of types in --help.

/// Accepts the path of a file that is there.
CLI::Validator existing_file();
/// Accepts one of `names`.
CLI::Validator one_of(std::vector<std::string> names);
/// Accepts finite numbers that fit; `range` goes on "is not a number", e.g. "above 0".
CLI::Validator number_where(const std::function<bool(double)>& fits, const std::string& range);
/// Accepts the path of a folder or file that may be a model.
CLI::Validator existing_model();
/// Accepts whole numbers from `minimum` to `maximum`.
CLI::Validator between(int64_t minimum, int64_t maximum);
/// Accepts whole numbers from `minimum` to 2^31 - 1.
CLI::Validator at_least(int64_t minimum);
/// Accepts whole numbers of 64 bits.
CLI::Validator is_seed();

/// Adds --kv-cache SIZE; parsing writes to `bytes`, which must outlive the command.
CLI::Option* add_kv_cache_option(CLI::App& command, const std::string& help, int64_t& bytes);

/// Adds --kv-cache-dtype T; parsing writes to `type`, which must outlive the command.
CLI::Option* add_kv_cache_type_option(CLI::App& command, KvCacheType& type);

/// Adds --model PATH, required.
void add_model_option(CLI::App& command, EngineConfig& config);

/// Adds --max-tokens, --stop, --temperature and the other options of sampling.
void add_sampling_options(CLI::App& command, SamplingParams& sampling);

}  // namespace anyslot::cli

#include "serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/options.h"

namespace anyslot::bench {

namespace {

constexpr const char* kWorkloadGroup = "Workload options";
constexpr const char* kLoadGroup = "Load options";

CLI::Option* add_count(CLI::App& command, const char* group, const std::string& name, int& value,
                       int minimum, const std::string& help) {
  return command.add_option(name, value, fmt::format("{} (default: {})", help, value))
      ->type_name("N")
      ->check(cli::at_least(minimum))
      ->group(group);
}

/// An option whose text `store` takes; its Status is the message of a wrong call.
template <typename Store>
CLI::Option* add_parsed(CLI::App& command, const char* group, const std::string& name,
                        const std::string& type, const std::string& help, Store store) {
  return command
      .add_option_function<std::string>(
          name,
          [name, store](const std::string& text) {
            const Status status = store(text);
            if (!status.ok()) throw CLI::ValidationError(name, status.message());
          },
          help)
      ->type_name(type)
      ->group(group);
}

Expected<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= 0) {
    return value;
  }
  return invalid_argument(fmt::format("\"{}\" is not a number of at least 0", text));
}

CLI::Option* add_number(CLI::App& command, const char* group, const std::string& name,
                        double& value, const std::string& help) {
  return add_parsed(command, group, name, "X", fmt::format("{} (default: {:g})", help, value),
                    [&value](const std::string& text) -> Status {
                      const Expected<double> number = parse_number(text);
                      if (number) value = *number;
                      return number.status();
                    });
}

CLI::Option* add_rate(CLI::App& command, const std::string& name, double& value,
                      const std::string& help) {
  return add_parsed(command, kLoadGroup, name, "X", fmt::format("{} (default: {:g})", help, value),
                    [&value](const std::string& text) -> Status {
                      const Expected<double> rate = parse_rate(text);
                      if (rate) value = *rate;
                      return rate.status();
                    });
}

Status set_order(const std::string& text, WorkloadOptions& options) {
  if (text != "new" && text != "fixed") {
    return invalid_argument(fmt::format("\"{}\" is neither new nor fixed", text));
  }
  options.order = text == "new" ? DocumentOrder::kNew : DocumentOrder::kFixed;
  return {};
}

Status set_ramp(const std::string& text, ArrivalOptions& arrivals) {
  if (text != "linear" && text != "exponential") {
    return invalid_argument(fmt::format("\"{}\" is neither linear nor exponential", text));
  }
  arrivals.ramp =
      text == "linear" ? ArrivalOptions::Ramp::kLinear : ArrivalOptions::Ramp::kExponential;
  return {};
}

void add_pool_options(CLI::App& command, WorkloadOptions& options) {
  add_count(command, kWorkloadGroup, "--num-documents", options.num_documents, 1,
            "documents in the pool");
  add_count(command, kWorkloadGroup, "--documents-per-prompt", options.documents_per_prompt, 0,
            "documents of one prompt; of chatrag, the first so many");
  add_count(command, kWorkloadGroup, "--document-len", options.document_len, 1,
            "tokens of a document of the pool");
  add_count(command, kWorkloadGroup, "--question-len", options.question_len, 1,
            "tokens after the documents");
  add_number(command, kWorkloadGroup, "--random-range-ratio", options.random_range_ratio,
             "lengths vary uniformly by this share up and down, below 1");
  add_count(command, kWorkloadGroup, "--rounds", options.rounds, 1,
            "questions of one conversation of multi-round");
}

}  // namespace

Expected<double> parse_rate(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  Expected<double> number = parse_number(text);
  if (number && *number > 0) return number;
  return invalid_argument(fmt::format("\"{}\" is neither a number above 0 nor inf", text));
}

Status add_goodput_target(const std::string& text, GoodputTargets& targets) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  std::optional<double>* target = name == "ttft"   ? &targets.ttft_ms
                                  : name == "tpot" ? &targets.tpot_ms
                                  : name == "e2el" ? &targets.e2el_ms
                                                   : nullptr;
  const Expected<double> limit = parse_number(text.substr(std::min(colon + 1, text.size())));
  if (target == nullptr || !limit) {
    return invalid_argument(
        fmt::format("\"{}\" is not a target as ttft:200, tpot:50 or e2el:1000 in ms", text));
  }
  *target = *limit;
  return {};
}

void add_workload_options(CLI::App& command, WorkloadOptions& options) {
  add_parsed(command, kWorkloadGroup, "--dataset-name", "NAME",
             "random, ragqa (also the files of block-bench: 2wiki, tqa, hqa, nq), longbench, "
             "chatrag, mooncake, long-document, multi-round (default: random)",
             [&options](const std::string& text) -> Status {
               const Expected<WorkloadKind> kind = parse_workload(text);
               if (kind) options.kind = *kind;
               return kind.status();
             });
  command
      .add_option("--dataset-path", options.dataset_path,
                  "the file of ragqa, longbench, chatrag or mooncake: JSON lines, or one array")
      ->type_name("FILE")
      ->group(kWorkloadGroup);
  command
      .add_option("--dataset-subset", options.dataset_name,
                  "longbench: the data set of rows that do not name theirs, as hotpotqa")
      ->type_name("NAME")
      ->group(kWorkloadGroup);
  add_pool_options(command, options);
  add_parsed(command, kWorkloadGroup, "--zipf", "S",
             "documents (of files: rows) are drawn by Zipf's law: that of rank r in proportion to "
             "r^-S (default: uniformly; of files, all rows in their order)",
             [&options](const std::string& text) -> Status {
               const Expected<double> exponent = parse_number(text);
               if (!exponent) return exponent.status();
               options.choice = DocumentChoice::kZipf;
               options.zipf = *exponent;
               return {};
             });
  add_parsed(command, kWorkloadGroup, "--document-order", "ORDER",
             "new: shuffled for each request; fixed: by number, or as in the file (default: new, "
             "of files fixed)",
             [&options](const std::string& text) { return set_order(text, options); });
  command
      .add_flag("--ignore-eos,!--no-ignore-eos", options.ignore_eos,
                "answers to random texts and traces have all their tokens (default: on)")
      ->group(kWorkloadGroup);
  add_number(command, kWorkloadGroup, "--time-scale", options.time_scale,
             "mooncake: arrivals at the trace's times multiplied by this");
}

void add_load_options(CLI::App& command, ServeOptions& options) {
  ArrivalOptions& arrivals = options.arrivals;
  add_count(command, kLoadGroup, "--num-prompts", options.num_prompts, 1,
            "requests; of files at most as many as they have rows, unless --zipf draws them");
  add_rate(command, "--request-rate", arrivals.request_rate,
           "requests per second, or inf: all at once");
  add_rate(command, "--burstiness", arrivals.burstiness,
           "shape of the gamma distribution of gaps between arrivals: 1 is a Poisson process, less "
           "has bursts, inf is a fixed gap");
  add_parsed(command, kLoadGroup, "--ramp-up-strategy", "NAME",
             "linear or exponential: instead of --request-rate, from --ramp-up-start-rps to "
             "--ramp-up-end-rps",
             [&arrivals](const std::string& text) { return set_ramp(text, arrivals); });
  add_rate(command, "--ramp-up-start-rps", arrivals.ramp_start_rps,
           "requests per second at the first request");
  add_rate(command, "--ramp-up-end-rps", arrivals.ramp_end_rps,
           "requests per second at the last request");
  add_count(command, kLoadGroup, "--max-concurrency", options.max_concurrency, 0,
            "requests in flight at most, later ones wait; 0: no limit");
  add_count(command, kLoadGroup, "--num-warmups", options.num_warmups, 0,
            "requests before the measured ones: of pools others, of files the first rows");
  add_number(command, kLoadGroup, "--timeout", options.timeout_seconds,
             "seconds without anything from the server after which a request has stalled");
  command
      .add_option_function<std::vector<std::string>>(
          "--goodput",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const Status status = add_goodput_target(text, options.goodput);
              if (!status.ok()) throw CLI::ValidationError("--goodput", status.message());
            }
          },
          "targets in ms that make a request good: ttft:200 tpot:50 e2el:1000")
      ->type_name("NAME:MS")
      ->group(kLoadGroup);
  command
      .add_option("--seed", options.seed,
                  "seed of documents, questions, orders and arrivals (default: 0)")
      ->type_name("S")
      ->check(cli::is_seed())
      ->group(kLoadGroup);
}

}  // namespace anyslot::bench

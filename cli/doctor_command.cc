#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "anyslot/build_info.h"
#include "bundled_data.h"
#include "command.h"
#include "demo_measurement.h"
#include "input_rows.h"
#include "machine_info.h"
#include "open_engine.h"
#include "output_file.h"
#include "sizes.h"
#include "table.h"

namespace anyslot::cli {
namespace {

constexpr int64_t kComfortableMemory = int64_t{1} << 30;

enum class Verdict { kOk, kNote, kMissing };

struct Finding {
  Verdict verdict;
  std::string what;
  std::string cure;  // empty when nothing is wrong
};

Finding check_instruction_sets(const MachineInfo& machine) {
  const auto has = [&](const char* flag) { return machine.flags.contains(flag); };
  if (!has("avx2") || !has("fma")) {
    return {Verdict::kNote, "no AVX2: only the scalar reference code can run here",
            "pass --device reference, or use an x86-64 machine of 2013 or later"};
  }
  if (!has("avx512f")) {
    return {Verdict::kNote, "AVX2, no AVX-512", "works; an AVX-512 machine is faster"};
  }
  if (!has("avx512_bf16")) {
    return {Verdict::kNote, "AVX-512, no bfloat16 instructions",
            "works; --dtype float32 may be as fast as bfloat16 here"};
  }
  return {Verdict::kOk, "AVX-512 with bfloat16 instructions", ""};
}

Finding check_memory(const MachineInfo& machine) {
  const std::string what =
      fmt::format("{} of memory, {} available", format_size(machine.memory_bytes),
                  format_size(machine.available_bytes));
  if (machine.available_bytes >= kComfortableMemory) return {Verdict::kOk, what, ""};
  return {Verdict::kNote, what, "end other programs, or pass a small --kv-cache such as 128MiB"};
}

Finding check_bundled_model() {
  Expected<BundledData> bundled = find_bundled_data();
  if (!bundled) return {Verdict::kMissing, "bundled model not found", bundled.status().message()};
  return {Verdict::kOk, "bundled model in " + bundled->model, ""};
}

/// Answers one bundled question, so that a machine on which the program cannot work is told here.
Finding check_answer(Interrupt& interrupt) {
  Expected<BundledData> bundled = find_bundled_data();
  if (!bundled) return {Verdict::kMissing, "no answer was tried: the bundled model is missing", ""};
  const auto failed = [](const Status& status) {
    return Finding{Verdict::kMissing, "the bundled model does not answer", status.message()};
  };
  Expected<std::vector<InputRow>> rows = load_input_rows(bundled->questions);
  if (!rows) return failed(rows.status());
  EngineConfig config;
  config.model_path = bundled->model;
  config.kv_cache_bytes = int64_t{64} << 20;
  Expected<Engine> engine = open_engine(config, interrupt);
  if (!engine) return failed(engine.status());
  const DemoPlan plan = plan_demo({rows->front()}, 1, 1);
  Expected<std::vector<MethodResult>> results = measure_methods(*engine, plan, [](int64_t) {});
  if (!results) return failed(results.status());
  for (const MethodResult& result : *results) {
    if (result.exact_matches == 0) {
      return {Verdict::kMissing,
              fmt::format("method {} gives wrong answers here", method_name(result.method)),
              "please report this with the lines above"};
    }
  }
  return {Verdict::kOk, "the bundled model answers, with every method", ""};
}

std::string facts_table(const MachineInfo& machine) {
  Table table({"what", "value"});
  table.add_row({"cpu", machine.cpu.empty() ? "unknown" : machine.cpu});
  table.add_row({"cpus for this process", fmt::format("{}", machine.num_cpus)});
  for (const auto& [name, value] : build_info()) table.add_row({name, value});
  return table.text();
}

std::string finding_line(const Finding& finding) {
  constexpr std::string_view kNames[] = {"ok     ", "note   ", "MISSING"};
  std::string line =
      fmt::format("{}  {}", kNames[static_cast<size_t>(finding.verdict)], finding.what);
  if (!finding.cure.empty()) line += ": " + finding.cure;
  return line + "\n";
}

Status doctor(Interrupt& interrupt) {
  const MachineInfo machine = machine_info();
  Status status = print(facts_table(machine) + "\n");
  if (!status.ok()) return status;
  int num_missing = 0;
  for (const Finding& finding : {check_instruction_sets(machine), check_memory(machine),
                                 check_bundled_model(), check_answer(interrupt)}) {
    if (finding.verdict == Verdict::kMissing) ++num_missing;
    status = print(finding_line(finding));
    if (!status.ok()) return status;
  }
  if (num_missing > 0) {
    return failed_precondition(fmt::format("{} of the checks above failed", num_missing));
  }
  return print("AnySlot can work on this machine.\n");
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("doctor", "Tell what this machine has, what is missing and how to get it");
  command->footer(
      "Prints the machine, instruction sets, libraries, threads and memory, then checks that the\n"
      "bundled model answers. Exit code 1 when something that is needed is missing.");
  command->callback([&action] { action = [](Interrupt& interrupt) { return doctor(interrupt); }; });
}

}  // namespace anyslot::cli

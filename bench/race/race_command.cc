#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "bench/bench_command.h"
#include "bench/options.h"
#include "cli/bundled_data.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/terminal.h"
#include "lanes.h"
#include "picture.h"
#include "race.h"
#include "replay.h"
#include "shown_text.h"
#include "terminal_view.h"

namespace anyslot::bench {

namespace {

constexpr const char* kEngineGroup = "Engine options";
constexpr std::string_view kClearLine = "\r\x1b[K";

struct Options {
  LaneOptions lanes;
  std::string input;
  RaceChoice choice;
  std::optional<uint64_t> seed;
  std::string record;
  bool no_color = false;
  bool no_replay = false;
};

Expected<RacePlan> plan(const Options& options) {
  std::string input = options.input;
  if (input.empty()) {
    Expected<cli::BundledData> bundled = cli::find_bundled_data();
    if (!bundled) return bundled.status();
    input = bundled->questions;
  }
  const Expected<std::vector<cli::InputRow>> rows = cli::load_input_rows(input);
  if (!rows) return rows.status();
  RaceChoice choice = options.choice;
  constexpr uint64_t kSeeds = 100'000;  // few digits, to be typed again
  choice.seed = options.seed ? *options.seed : std::random_device()() % kSeeds;
  return plan_race(*rows, input, choice);
}

/// The file of --record, before anything takes time; none without the option.
Expected<std::optional<cli::OutputFile>> open_record(const Options& options,
                                                     cli::Interrupt& interrupt) {
  std::optional<cli::OutputFile> none;
  if (options.record.empty()) return none;
  Expected<cli::OutputFile> file = cli::OutputFile::open(options.record, interrupt);
  if (!file) return file.status();
  if (file->is_standard_output()) {
    return invalid_argument("--record: the picture needs a file of its own, the result is printed");
  }
  return std::optional<cli::OutputFile>(*std::move(file));
}

Expected<std::vector<RaceRun>> run_lanes(const Options& options, const RacePlan& plan,
                                         const OpenLanes& open, const cli::Terminal& terminal) {
  const auto tell = [&](const std::string& text) {
    if (terminal.moves_cursor) (void)cli::print(std::string(kClearLine) + text).ok();
  };
  Expected<std::vector<RaceRun>> runs = run_race(
      plan, open.lanes, options.lanes.timeout_seconds, [&](RaceStage stage, const Lane& lane) {
        tell(visible_line(lane.name) + (stage == RaceStage::kReadingBefore
                                            ? " reads the documents in their old order ..."
                                            : " runs alone ..."));
      });
  tell("");
  return runs;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Draws the lanes again and again, over themselves, until they have ended.
Status replay(const TerminalView& view, double end_ms, cli::Interrupt& interrupt) {
  constexpr std::chrono::milliseconds kFrame{33};
  constexpr std::string_view kHideCursor = "\x1b[?25l";
  interrupt.at_end([] { return cli::print("\x1b[?25h"); });
  Status status = cli::print(std::string(kHideCursor) + joined(view.lanes(0)));
  const double scale = replay_scale(end_ms);
  const auto begin = std::chrono::steady_clock::now();
  for (double ms = 0; ms < end_ms && status.ok();) {
    std::this_thread::sleep_for(kFrame);
    ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
             .count() /
         scale;
    const std::vector<std::string> lines = view.lanes(std::min(ms, end_ms));
    std::string text = fmt::format("\x1b[{}A", lines.size());
    for (const std::string& line : lines) text += std::string(kClearLine) + line + "\n";
    status = cli::print(text);
  }
  return status;
}

Status show(const Race& race, const Options& options, const cli::Terminal& terminal,
            cli::Interrupt& interrupt) {
  if (!terminal.moves_cursor || terminal.columns < kMinColumns) {
    return cli::print(plain_result(race));
  }
  const TerminalView view(race, {terminal.columns, terminal.colours && !options.no_color});
  Status status = cli::print(joined(view.heading()));
  if (!status.ok()) return status;
  const double end = race_end_ms(race);
  const bool fits = static_cast<int>(view.lanes(end).size()) < terminal.rows;
  status = fits && !options.no_replay ? replay(view, end, interrupt)
                                      : cli::print(joined(view.lanes(end)));
  if (!status.ok()) return status;
  return cli::print("\n" + joined(view.verdict()));
}

Status run(const Options& options, cli::Interrupt& interrupt) {
  Race race;
  Expected<RacePlan> planned = plan(options);
  if (!planned) return planned.status();
  race.plan = *std::move(planned);
  Expected<std::optional<cli::OutputFile>> record = open_record(options, interrupt);
  if (!record) return record.status();
  const Expected<OpenLanes> open = open_lanes(options.lanes, interrupt);
  if (!open) return open.status();
  race.model = open->model;
  const cli::Terminal terminal = cli::standard_output();
  Expected<std::vector<RaceRun>> runs = run_lanes(options, race.plan, *open, terminal);
  if (!runs) return runs.status();
  race.runs = *std::move(runs);
  Status recorded;  // before the replay, which may be left
  if (*record) {
    recorded = (*record)->write(race_picture(race));
    if (recorded.ok()) recorded = (*record)->commit();
  }
  Status shown = show(race, options, terminal, interrupt);
  return shown.ok() ? recorded : shown;
}

CLI::Option* add_text(CLI::App& command, const char* name, std::string& value, const char* type,
                      const char* help) {
  return command.add_option(name, value, help)->type_name(type);
}

void add_question_options(CLI::App& command, Options& options) {
  add_text(command, "--input", options.input, "FILE",
           "rows as `anyslot run` takes them (default: the bundled questions)");
  command.add_option("--index", options.choice.index, "the row that is raced (default: 1)")
      ->type_name("N")
      ->check(cli::at_least(1));
  command
      .add_option("--documents", options.choice.num_documents,
                  "the first N documents of the row (default: all)")
      ->type_name("N")
      ->check(cli::at_least(1));
  command
      .add_option("--max-tokens", options.choice.max_tokens,
                  "tokens of an answer, at most (default: as the row says, else 64)")
      ->type_name("N")
      ->check(cli::at_least(1));
  command
      .add_option("--seed", options.seed,
                  "seed of the new order of the documents (default: another one each time)")
      ->type_name("S")
      ->check(cli::is_seed());
  command.add_flag("--cold", options.choice.cold,
                   "nothing is read before the race (default: each lane first reads the documents "
                   "in their old order, unmeasured)");
}

void add_lane_options(CLI::App& command, LaneOptions& lanes) {
  CLI::Option* methods = add_list_option(
      command, "--method", lanes.methods,
      "two of lazy, block, mepic, prefix and full (default: lazy,prefix)",
      [](const std::string& text) -> Expected<std::vector<Method>> {
        Expected<std::vector<Method>> parsed = parse_each<Method>(text, parse_method);
        if (parsed && parsed->size() != 2) {
          return invalid_argument("a race has two lanes; give two methods, as lazy,prefix");
        }
        return parsed;
      });
  methods->type_name("M,M");
  add_text(command, "--model", lanes.model, "PATH|NAME",
           "in process, a Hugging Face folder or a GGUF file (default: the bundled model); of a "
           "server, the name that requests give (default: the first that it has)");
  CLI::Option* url = add_text(command, "--url", lanes.url, "URL",
                              "race two methods of an AnySlot server, as http://127.0.0.1:8080");
  CLI::Option* a =
      add_text(command, "--a", lanes.a, "URL", "race two servers of OpenAI's API: the first");
  CLI::Option* b = add_text(command, "--b", lanes.b, "URL",
                            "and the second; what is no AnySlot server, as vLLM or llama.cpp, gets "
                            "the documents in the text of the prompt");
  a->needs(b)->excludes(url)->excludes(methods);
  b->needs(a)->excludes(url)->excludes(methods);
  CLI::Option* key = add_text(command, "--api-key", lanes.api_key, "KEY", "sent to the servers");
  add_text(command, "--api-key-file", lanes.api_key_file, "FILE",
           "a file whose first line is that key, which no list of processes then shows")
      ->excludes(key);
  command
      .add_option("--timeout", lanes.timeout_seconds,
                  "seconds without anything from a lane after which the race fails (default: 300)")
      ->type_name("X")
      ->check(cli::number_where([](double x) { return x >= 0.001 && x <= 1e6; },
                                "from 0.001 to 1000000"));
}

void add_view_options(CLI::App& command, Options& options) {
  add_text(command, "--record", options.record, "FILE.svg",
           "write the race as an animated picture (SVG)");
  command.add_flag("--no-replay", options.no_replay,
                   "show the end at once (default: off; what is no terminal gets plain lines)");
  command.add_flag("--no-color", options.no_color,
                   "without colours, as with NO_COLOR in the environment (default: off)");
}

/// Nothing is dropped silently: options of an engine that is not opened are a mistake.
void refuse_engine_options_of_servers(const CLI::App& command, const Options& options) {
  if (options.lanes.in_process()) return;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == kEngineGroup && option->count() > 0) {
      throw CLI::ValidationError(option->get_name(),
                                 "is an option of the engine in process, not of a server");
    }
  }
}

}  // namespace

}  // namespace anyslot::bench

namespace anyslot::cli {

void add_race_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "race", "Race two methods or two servers for the first token, side by side");
  auto options = std::make_shared<bench::Options>();
  bench::add_question_options(*command, *options);
  bench::add_lane_options(*command, options->lanes);
  bench::add_view_options(*command, *options);
  add_engine_options(*command, options->lanes.engine, EngineOptionSet::kAnyTarget);
  command->parse_complete_callback(
      [command, options] { bench::refuse_engine_options_of_servers(*command, *options); });
  command->footer(
      "The lanes run one after the other, so that neither slows the other, and are then replayed\n"
      "together by one scale.");
  bench::set_action(*command, options, bench::run, action);
}

}  // namespace anyslot::cli

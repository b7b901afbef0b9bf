#include "terminal_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/table.h"
#include "prompt_tiles.h"
#include "replay.h"
#include "shown_text.h"
#include "verdict.h"

namespace anyslot::bench {

namespace {

constexpr size_t kMaxWidth = 108;
constexpr size_t kLabelWidth = 9;  // "  prompt "
constexpr size_t kTimeWidth = 11;  // " 1234.5 ms…"
constexpr size_t kMaxAnswerLines = 4;

// Parameters of the terminal's "select graphic rendition".
const std::string kBold = "1";
const std::string kSoft = "2";
const std::string kLaneCodes[] = {"38;5;37", "38;5;172"};

std::string label(std::string_view text) { return fmt::format("  {:<{}}", text, kLabelWidth - 2); }

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

/// `share` of `width` columns, in whole columns.
size_t columns_of(double share, size_t width) {
  return static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
}

/// The colour of the 256 that is nearest: one of the cube of 6 x 6 x 6.
std::string background_code(const Rgb& colour) {
  const auto step = [](int value) { return (value * 5 + 127) / 255; };
  const int index = 16 + 36 * step(colour.red) + 6 * step(colour.green) + step(colour.blue);
  return fmt::format("30;48;5;{}", index);
}

}  // namespace

TerminalView::TerminalView(const Race& race, const ViewStyle& style)
    : race_(race),
      style_(style),
      width_(std::min<size_t>(kMaxWidth, static_cast<size_t>(style.columns) - 1)) {
  for (const RaceRun& run : race.runs) {
    Answer answer;
    for (const RacePiece& piece : run.pieces) {
      answer.text += visible_line(piece.text);
      answer.piece_ends.push_back(answer.text.size());
    }
    answers_.push_back(std::move(answer));
  }
}

std::string TerminalView::painted(const std::string& text, const std::string& codes) const {
  if (!style_.colours || codes.empty() || text.empty()) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", codes, text);
}

std::vector<std::string> TerminalView::wrapped(const std::string& text,
                                               const std::string& codes) const {
  std::vector<std::string> lines;
  for (const TextRange& line : wrapped_lines(text, width_)) {
    lines.push_back(painted(text.substr(line.begin, line.end - line.begin), codes));
  }
  return lines;
}

std::vector<std::string> TerminalView::heading() const {
  std::vector<std::string> lines = wrapped(visible_line(race_.plan.question), kBold);
  for (std::string& line : wrapped(start_text(race_.plan), kSoft)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> TerminalView::lanes(double ms) const {
  std::vector<std::string> lines;
  for (size_t number = 0; number < race_.runs.size(); ++number) {
    lines.emplace_back();
    for (std::string& line : lane(number, ms)) lines.push_back(std::move(line));
  }
  lines.emplace_back();
  lines.push_back(legend());
  const double end = race_end_ms(race_);
  lines.push_back(
      painted(ms < end ? fmt::format("Replay of both lanes, {}.", scale_text(replay_scale(end)))
                       : "Both lanes on one scale, each measured while it ran alone.",
              kSoft));
  return lines;
}

std::vector<std::string> TerminalView::lane(size_t number, double ms) const {
  const RaceRun& run = race_.runs[number];
  std::vector<std::string> lines = {title(number)};
  lines.push_back(painted(label("prompt"), kSoft) + prompt(run));
  lines.push_back(painted(label("") + reuse_text(run), kSoft));
  lines.push_back(painted(label("time"), kSoft) + bar(number, ms));
  for (std::string& line : answer_lines(number, ms)) lines.push_back(std::move(line));
  return lines;
}

std::string TerminalView::title(size_t number) const {
  const RaceRun& run = race_.runs[number];
  const std::string name = cli::shortened(visible_line(run.name), width_ / 2);
  const size_t left = width_ - cli::display_width(name) - 2;
  return painted(name, kBold + ";" + kLaneCodes[number]) + "  " +
         painted(cli::shortened(visible_line(run.note), left), kSoft);
}

std::string TerminalView::prompt(const RaceRun& run) const {
  const size_t width = width_ - kLabelWidth;
  const std::vector<PromptTile> tiles = prompt_tiles(run, width);
  const auto total = static_cast<double>(std::max<int64_t>(1, tile_tokens(tiles)));
  std::string text;
  int64_t before = 0;
  for (const PromptTile& tile : tiles) {
    const size_t begin = columns_of(static_cast<double>(before) / total, width);
    before += tile.tokens;
    const size_t columns = columns_of(static_cast<double>(before) / total, width) - begin;
    if (columns == 0) continue;
    const double share = static_cast<double>(tile.cached) / static_cast<double>(tile.tokens);
    const size_t cached = columns_of(share, columns);
    std::string cells = columns >= tile.label.size() ? tile.label : "";
    const auto fill = [&](size_t end, std::string_view sign) {
      while (cells.size() < end) cells += sign;
    };
    fill(cached, style_.colours ? " " : "=");
    const size_t split = std::min(cached, cells.size());
    const std::string cached_cells = cells.substr(0, split);
    std::string computed_cells = cells.substr(split);
    computed_cells += repeated(".", columns - cells.size());
    const Rgb grey{190, 190, 190};
    text += painted(cached_cells,
                    background_code(tile.document ? document_colour(*tile.document) : grey));
    text += painted(computed_cells, kSoft);
  }
  return text;
}

std::string TerminalView::bar(size_t number, double ms) const {
  const RaceRun& run = race_.runs[number];
  const RunState state = state_at(run, ms);
  const double end = race_end_ms(race_);
  const size_t width = width_ - kLabelWidth - kTimeWidth;
  const auto columns = [&](double until) { return end > 0 ? columns_of(until / end, width) : 0; };
  size_t waited = columns(state.waited_ms);
  if (state.begun) waited = std::max<size_t>(waited, 1);
  const size_t filled = std::max(waited, columns(state.waited_ms + state.answered_ms));
  const std::string& codes = kLaneCodes[number];
  std::string time = duration_text(state.begun ? *run.first_token_ms : state.waited_ms);
  if (state.ended && !run.first_token_ms) time = "no token";
  const bool waits = !state.begun && !state.ended;
  return painted(repeated("█", waited), codes) + painted(repeated("▒", filled - waited), codes) +
         std::string(width - filled, ' ') +
         painted(fmt::format("{:>{}}", time, kTimeWidth), waits ? kSoft : kBold + ";" + codes);
}

/// What has come of the answer, in as many lines as the whole one takes, so that nothing jumps.
std::vector<std::string> TerminalView::answer_lines(size_t number, double ms) const {
  const Answer& answer = answers_[number];
  const size_t pieces = state_at(race_.runs[number], ms).pieces;
  const size_t come = pieces > 0 ? answer.piece_ends[pieces - 1] : 0;
  const size_t width = width_ - kLabelWidth;
  const std::vector<TextRange> ranges = wrapped_lines(answer.text, width);
  std::vector<std::string> lines;
  for (const TextRange& range : ranges) {
    if (lines.size() == kMaxAnswerLines) break;
    const size_t end = std::clamp(come, range.begin, range.end);
    std::string text = answer.text.substr(range.begin, end - range.begin);
    const bool is_cut = lines.size() + 1 == kMaxAnswerLines && ranges.size() > kMaxAnswerLines;
    if (is_cut && end == range.end) text = cli::shortened(text + " ...", width);
    lines.push_back(painted(label(lines.empty() ? "answer" : ""), kSoft) + text);
  }
  return lines;
}

std::string TerminalView::legend() const {
  const std::string cached =
      style_.colours ? painted(" X ", background_code(document_colour(1))) : "X==";
  return cached + painted(" cached   ", kSoft) + painted("X..", kSoft) +
         painted(" computed   █ first token   ▒ answer", kSoft);
}

std::vector<std::string> TerminalView::verdict() const {
  std::vector<std::string> lines;
  for (const std::string& sentence : verdict_of(race_)) {
    const std::string codes = lines.empty() ? kBold : "";
    for (std::string& line : wrapped(visible_line(sentence), codes)) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string plain_result(const Race& race) {
  cli::Table table({"lane", ">time to first token", ">whole answer", ">cached tokens", "answer"});
  for (const RaceRun& run : race.runs) {
    const std::string cached =
        run.cached_tokens
            ? fmt::format("{} of {}", count_text(*run.cached_tokens), count_text(run.prompt_tokens))
            : "not told";
    table.add_row({visible_line(run.name),
                   run.first_token_ms ? duration_text(*run.first_token_ms) : "no token",
                   duration_text(run.total_ms), cached, visible_line(run.answer())});
  }
  std::string text = fmt::format("{}\n{}\n{}\n\n{}\n", visible_line(race.plan.question),
                                 start_text(race.plan), visible_line(race.model), table.text());
  for (const std::string& sentence : verdict_of(race)) text += visible_line(sentence) + "\n";
  return text;
}

}  // namespace anyslot::bench

#include "picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/table.h"
#include "picture_style.h"
#include "prompt_tiles.h"
#include "replay.h"
#include "shown_text.h"
#include "svg_text.h"
#include "verdict.h"

namespace anyslot::bench {

namespace {

// Pixels.
constexpr double kWidth = 760;
constexpr double kMargin = 16;
constexpr double kLeft = 34;  // of what stands in a lane
constexpr double kRight = kWidth - kLeft;
constexpr double kInside = kRight - kLeft;
constexpr double kTileHeight = 24;
constexpr double kTrackHeight = 14;
constexpr double kAnswerLine = 20;

// Columns and lines that texts may have; a column is wider than most letters.
constexpr size_t kQuestionColumns = 70;
constexpr size_t kQuestionLines = 2;
constexpr size_t kNameColumns = 30;
constexpr size_t kNoteColumns = 50;
constexpr size_t kAnswerColumns = 74;
constexpr size_t kAnswerLines = 3;
constexpr size_t kVerdictColumns = 96;
constexpr size_t kVerdictLines = 3;  // of a sentence
constexpr size_t kFootColumns = 108;
constexpr size_t kMaxTiles = 64;  // of a lane
constexpr size_t kMaxSteps = 40;  // of an answer

/// What computed parts of a prompt are filled with.
constexpr std::string_view kPattern = R"svg(<defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<rect width="6" height="6" class="surface"/><path d="M3 0v6" class="hatch"/>
</pattern>
</defs>)svg";

/// Lines of a text that is visible; what is too much ends in "...".
std::vector<std::string> lines_of(const std::string& text, size_t columns, size_t most) {
  std::vector<std::string> lines;
  for (const TextRange& range : wrapped_lines(text, columns)) {
    if (lines.size() == most) {
      lines.back() = cli::shortened(lines.back() + " ...", columns);
      break;
    }
    lines.push_back(text.substr(range.begin, range.end - range.begin));
  }
  return lines;
}

std::string text_at(double x, double y, std::string_view classes, std::string_view content) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", svg_number(x),
                     svg_number(y), classes, content);
}

std::string rect_at(double x, double y, double width, double height, std::string_view attributes) {
  return fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" {}/>)"
                     "\n",
                     svg_number(x), svg_number(y), svg_number(width), svg_number(height),
                     attributes);
}

/// A part of an answer that appears at once.
struct Step {
  double at_ms = 0;
  size_t end = 0;  // bytes of the shown answer up to here
};

/// Draws from the top to the bottom.
class Drawing {
 public:
  explicit Drawing(const Race& race)
      : race_(race), timeline_(race), end_ms_(std::max(race_end_ms(race), 1e-3)) {}

  std::string draw() {
    heading();
    for (size_t number = 0; number < race_.runs.size(); ++number) lane(number);
    axis();
    verdict();
    foot();
    return document();
  }

 private:
  void heading() {
    y_ = 34;
    for (const std::string& line :
         lines_of(visible_line(race_.plan.question), kQuestionColumns, kQuestionLines)) {
      body_ += text_at(kMargin, y_, "question", svg_text(line));
      y_ += 23;
    }
    body_ += text_at(kMargin, y_, "small soft", svg_text(start_text(race_.plan)));
    y_ += 14;
  }

  void lane(size_t number) {
    const RaceRun& run = race_.runs[number];
    const std::string answer = answer_lines(number, y_ + 94);
    const double height = 104 + kAnswerLine * static_cast<double>(answer_height_);
    body_ += rect_at(kMargin, y_, kWidth - 2 * kMargin, height, "rx=\"8\" class=\"card\"");
    body_ += rect_at(kMargin, y_, 5, height, fmt::format("rx=\"2\" class=\"lane{}\"", number));
    title(number, y_ + 24);
    tiles(run, y_ + 34);
    body_ += text_at(kLeft, y_ + 73, "small soft", svg_text(reuse_text(run)));
    const std::string total = fmt::format("t{}", number);
    style_ += appearing(total, timeline_, run.total_ms);
    body_ += text_at(kRight, y_ + 73, "small soft end show " + total,
                     svg_text("whole answer after " + duration_text(run.total_ms)));
    track(number, y_ + 80);
    body_ += answer;
    y_ += height + 10;
  }

  void title(size_t number, double y) {
    const RaceRun& run = race_.runs[number];
    const std::string name = cli::shortened(visible_line(run.name), kNameColumns);
    const std::string note = cli::shortened(visible_line(run.note), kNoteColumns);
    body_ +=
        text_at(kLeft, y, "small soft",
                fmt::format("<tspan class=\"name lane{}\">{}</tspan><tspan dx=\"10\">{}</tspan>",
                            number, svg_text(name), svg_text(note)));
    const std::string first = fmt::format("f{}", number);
    style_ += appearing(first, timeline_, run.first_token_ms.value_or(run.total_ms));
    const std::string time = run.first_token_ms ? fmt::format(
                                                      "<tspan class=\"big lane{}\">{}</tspan>"
                                                      "<tspan dx=\"7\">to the first token</tspan>",
                                                      number, duration_text(*run.first_token_ms))
                                                : "no token";
    body_ += text_at(kRight, y, "small soft end show " + first, time);
  }

  /// The prompt to scale: what was cached is filled, what was computed is hatched.
  void tiles(const RaceRun& run, double y) {
    const std::vector<PromptTile> all = prompt_tiles(run, kMaxTiles);
    const double per_token = kInside / static_cast<double>(std::max<int64_t>(1, tile_tokens(all)));
    double x = kLeft;
    for (const PromptTile& each : all) {
      const double room = static_cast<double>(each.tokens) * per_token;
      tile(each, x, y, std::max(room - 2, 1.0));
      x += room;
    }
  }

  void tile(const PromptTile& tile, double x, double y, double width) {
    const double share =
        std::clamp(static_cast<double>(tile.cached) / static_cast<double>(tile.tokens), 0.0, 1.0);
    body_ += rect_at(x, y, width, kTileHeight,
                     share > 0 ? R"(rx="3" class="tile whole")" : R"(rx="3" class="tile")");
    if (share > 0) {
      const Rgb colour = tile.document ? document_colour(*tile.document) : Rgb{190, 195, 198};
      body_ += rect_at(x, y, width * share, kTileHeight,
                       fmt::format(R"(rx="3" fill="#{:02x}{:02x}{:02x}")", colour.red, colour.green,
                                   colour.blue));
    }
    const double letter_width = 9 * static_cast<double>(tile.label.size());
    if (tile.label.empty() || width < letter_width + 2) return;
    body_ += text_at(x + width / 2, y + 16, share > 0.5 ? "letter on-tile" : "letter", tile.label);
  }

  void track(size_t number, double y) {
    const RaceRun& run = race_.runs[number];
    const double first = run.first_token_ms.value_or(run.total_ms);
    const double waited = first / end_ms_ * kInside;
    const double answered = run.total_ms / end_ms_ * kInside - waited;
    const std::string names[] = {fmt::format("w{}", number), fmt::format("a{}", number)};
    style_ += growing(names[0], timeline_, 0, first);
    style_ += growing(names[1], timeline_, first, run.total_ms);
    body_ += rect_at(kLeft, y, kInside, kTrackHeight, R"(rx="3" class="track")");
    body_ += rect_at(kLeft, y, waited, kTrackHeight,
                     fmt::format(R"(class="lane{} grow {}")", number, names[0]));
    body_ += rect_at(kLeft + waited, y, answered, kTrackHeight,
                     fmt::format(R"(class="rest{} grow {}")", number, names[1]));
  }

  /// The answer in lines, the parts of which appear as they came.
  std::string answer_lines(size_t number, double y) {
    std::string text;
    const std::vector<Step> steps = steps_of(race_.runs[number], text);
    const std::vector<TextRange> ranges = wrapped_lines(text, kAnswerColumns);
    answer_height_ = std::min(ranges.size(), kAnswerLines);
    const size_t shown = ranges[answer_height_ - 1].end;
    std::string lines;
    for (size_t line = 0; line < answer_height_; ++line) {
      y += kAnswerLine;
      std::string content;
      size_t begin = ranges[line].begin;
      for (size_t step = 0; step < steps.size(); ++step) {
        const size_t end = std::min(steps[step].end, ranges[line].end);
        if (end <= begin) continue;
        content += fmt::format("<tspan class=\"show s{}-{}\">{}</tspan>", number, step,
                               svg_text(std::string_view(text).substr(begin, end - begin)));
        begin = end;
      }
      if (shown < text.size() && line + 1 == answer_height_) content += "<tspan> ...</tspan>";
      lines += fmt::format(
          "<text x=\"{}\" y=\"{}\" class=\"answer\" xml:space=\"preserve\">{}"
          "</text>\n",
          svg_number(kLeft), svg_number(y), content);
    }
    for (size_t step = 0; step < steps.size(); ++step) {
      if (step > 0 && steps[step - 1].end >= shown) break;
      style_ += appearing(fmt::format("s{}-{}", number, step), timeline_, steps[step].at_ms);
    }
    return lines;
  }

  /// The whole answer as it is shown, and what comes when, at most kMaxSteps of it.
  static std::vector<Step> steps_of(const RaceRun& run, std::string& text) {
    const size_t per_step = (run.pieces.size() + kMaxSteps - 1) / kMaxSteps;
    std::vector<Step> steps;
    for (size_t i = 0; i < run.pieces.size(); ++i) {
      text += visible_line(run.pieces[i].text);
      if ((i + 1) % per_step == 0 || i + 1 == run.pieces.size()) {
        steps.push_back({run.pieces[i].at_ms, text.size()});
      }
    }
    return steps;
  }

  void axis() {
    constexpr double kLastTick = 0.88;  // of the axis: there its label still has room
    for (const double ms : axis_ticks(end_ms_ * kLastTick)) {
      const double x = kLeft + ms / end_ms_ * kInside;
      body_ += fmt::format(R"(<path d="M{} {}v8" class="tick"/>)"
                           "\n",
                           svg_number(x), svg_number(y_ - 4));
      body_ += text_at(x + 5, y_ + 5, "small soft",
                       ms < 1000 ? svg_number(ms) + " ms" : svg_number(ms / 1000) + " s");
    }
    y_ += 16;
  }

  void verdict() {
    std::vector<std::string> lines;
    for (const std::string& sentence : verdict_of(race_)) {
      for (std::string& line : lines_of(visible_line(sentence), kVerdictColumns, kVerdictLines)) {
        lines.push_back(std::move(line));
      }
    }
    style_ += appearing("verdict", timeline_, end_ms_);
    const double height = 18 + 21 * static_cast<double>(lines.size());
    body_ += "<g class=\"show verdict\">\n";
    body_ += rect_at(kMargin, y_, kWidth - 2 * kMargin, height, "rx=\"8\" class=\"card\"");
    double y = y_ + 25;
    for (size_t i = 0; i < lines.size(); ++i, y += 21) {
      body_ += text_at(kLeft, y, i == 0 ? "name" : "answer", svg_text(lines[i]));
    }
    body_ += "</g>\n";
    y_ += height + 20;
  }

  void foot() {
    body_ += rect_at(
        kMargin, y_ - 10, 20, 12,
        fmt::format(R"(rx="3" class="tile whole" style="fill:#{:02x}{:02x}{:02x}")",
                    document_colour(1).red, document_colour(1).green, document_colour(1).blue));
    body_ += text_at(kMargin + 26, y_, "small soft", "from the cache");
    body_ += rect_at(kMargin + 130, y_ - 10, 20, 12, R"(rx="3" class="tile")");
    body_ += text_at(kMargin + 156, y_, "small soft", "computed");
    body_ += rect_at(kMargin + 230, y_ - 10, 10, 12, R"(class="lane0")");
    body_ += rect_at(kMargin + 240, y_ - 10, 10, 12, R"(class="lane1")");
    body_ += text_at(kMargin + 256, y_, "small soft", "until the first token");
    body_ += rect_at(kMargin + 392, y_ - 10, 10, 12, R"(class="rest0")");
    body_ += rect_at(kMargin + 402, y_ - 10, 10, 12, R"(class="rest1")");
    body_ += text_at(kMargin + 418, y_, "small soft", "the rest of the answer");
    y_ += 20;
    const std::string how = fmt::format("Each lane ran alone; replayed {}. {}",
                                        scale_text(timeline_.scale()), visible_line(race_.model));
    for (const std::string& line : lines_of(how, kFootColumns, 2)) {
      body_ += text_at(kMargin, y_, "small soft", svg_text(line));
      y_ += 17;
    }
  }

  std::string document() const {
    std::string words;
    for (const std::string& sentence : verdict_of(race_)) words += sentence + " ";
    const std::string height = svg_number(y_);
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n"
        "<style>{4}{5}</style>\n{6}\n"
        "<rect width=\"{0}\" height=\"{1}\" rx=\"10\" class=\"ground\"/>\n{7}</svg>\n",
        svg_number(kWidth), height, svg_text(cli::shortened(race_.plan.question, 200)),
        svg_text(cli::shortened(words, 600)), picture_style(timeline_), style_, kPattern, body_);
  }

  const Race& race_;
  Timeline timeline_;
  double end_ms_;
  double y_ = 0;
  size_t answer_height_ = 0;  // lines of the latest answer
  std::string body_;
  std::string style_;  // rules of single elements
};

}  // namespace

std::string race_picture(const Race& race) { return Drawing(race).draw(); }

}  // namespace anyslot::bench

#include "terminal_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/table.h"
#include "replay.h"
#include "test_race.h"

namespace anyslot::bench {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> all_lines(const TerminalView& view, double ms) {
  std::vector<std::string> lines = view.heading();
  for (const auto& more : {view.lanes(ms), view.verdict()}) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

bool has_control(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// Without the codes of colours, which stand between ESC [ and m.
std::string without_colours(std::string text) {
  for (size_t begin = 0; (begin = text.find("\x1b[", begin)) != std::string::npos;) {
    const size_t end = text.find_first_not_of("0123456789;", begin + 2);
    EXPECT_TRUE(end != std::string::npos && text[end] == 'm') << text;
    if (end == std::string::npos) break;
    text.erase(begin, end + 1 - begin);
  }
  return text;
}

TEST(TerminalView, FitsTheTerminalAtAnyMoment) {
  for (const Race& race : {sample_race(), hostile_race(), large_race()}) {
    for (const int columns : {kMinColumns, 80, 300}) {
      for (const bool colours : {false, true}) {
        const TerminalView view(race, {columns, colours});
        const size_t count = view.lanes(0).size();
        for (const double ms : {0.0, 25.0, 95.0, race_end_ms(race)}) {
          EXPECT_EQ(view.lanes(ms).size(), count);
          for (const std::string& line : all_lines(view, ms)) {
            const std::string shown = without_colours(line);
            EXPECT_LT(cli::display_width(shown), static_cast<size_t>(columns)) << line;
            EXPECT_FALSE(has_control(shown)) << line;
          }
        }
      }
    }
  }
}

TEST(TerminalView, HasNoCodesWithoutColours) {
  const Race race = hostile_race();
  for (const std::string& line : all_lines(TerminalView(race, {80, false}), 95)) {
    EXPECT_FALSE(has_control(line)) << line;
  }
  EXPECT_THAT(all_lines(TerminalView(race, {80, true}), 95), Contains(HasSubstr("\x1b[")));
}

TEST(TerminalView, ShowsWhatWasCachedOfEachDocument) {
  const Race race = sample_race();
  const std::vector<std::string> lines = TerminalView(race, {80, false}).lanes(0);
  std::vector<std::string> prompts;
  for (const std::string& line : lines) {
    if (line.starts_with("  prompt ")) prompts.push_back(line.substr(9));
  }
  ASSERT_EQ(prompts.size(), 2U);  // 70 columns for 100 tokens
  const auto tile = [](char letter, char fill, size_t width) {
    return letter + std::string(width - 1, fill);
  };
  EXPECT_EQ(prompts[0],
            tile('C', '=', 21) + tile('A', '=', 14) + tile('B', '=', 21) + tile('Q', '.', 14));
  EXPECT_EQ(prompts[1],
            tile('C', '=', 21) + tile('A', '.', 14) + tile('B', '.', 21) + tile('Q', '.', 14));
  EXPECT_THAT(lines, Contains(HasSubstr("30 of 80 document tokens cached")));
}

TEST(TerminalView, GrowsToTheTimesThatWereMeasured) {
  const Race race = sample_race();
  const TerminalView view(race, {80, false});
  const auto bars = [&](double ms) {
    std::vector<size_t> waited;
    for (const std::string& line : view.lanes(ms)) {
      if (!line.starts_with("  time ")) continue;
      size_t blocks = 0;
      for (size_t at = 0; (at = line.find("█", at)) != std::string::npos; ++at) ++blocks;
      waited.push_back(blocks);
    }
    return waited;
  };
  EXPECT_THAT(bars(0), testing::ElementsAre(0, 0));
  EXPECT_THAT(bars(10), testing::ElementsAre(6, 6));  // of 59 columns for 100 ms
  EXPECT_THAT(bars(100), testing::ElementsAre(12, 53));
  EXPECT_THAT(view.lanes(10), Not(Contains(HasSubstr("Che"))));
  EXPECT_THAT(view.lanes(20), Contains("  answer Che"));
  EXPECT_THAT(view.lanes(30), Contains("  answer Chemi"));
  EXPECT_THAT(view.lanes(100), Contains(HasSubstr("90 ms")));
  EXPECT_THAT(view.lanes(10), Contains(HasSubstr("50 times slower")));
}

TEST(PlainResult, HasAllOfItWithoutCodes) {
  const std::string text = plain_result(sample_race());
  EXPECT_THAT(text, HasSubstr("Which river flows through Nelwick?\n"));
  EXPECT_THAT(text, HasSubstr("seed 17"));
  EXPECT_THAT(text, testing::ContainsRegex("lazy +20 ms +30 ms +80 of 100 +Chemi\n"));
  EXPECT_THAT(text, testing::ContainsRegex("prefix +90 ms +100 ms +30 of 100 +Chemi\n"));
  EXPECT_THAT(text, HasSubstr("4.5 times sooner"));
  std::string hostile = plain_result(hostile_race());
  std::erase(hostile, '\n');
  EXPECT_FALSE(has_control(hostile));
}

}  // namespace
}  // namespace anyslot::bench

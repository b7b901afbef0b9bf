#include "picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "picture_style.h"
#include "svg_text.h"
#include "test_race.h"

namespace anyslot::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Why a text is not well-formed XML of elements, attributes and the five entities; "" when it is.
std::string fault_of(const std::string& xml) {
  const std::regex tag(R"(<(/?)([A-Za-z][\w:-]*)((?:\s+[A-Za-z][\w:-]*="[^"<]*")*)\s*(/?)>)");
  const std::regex entity("&(amp|lt|gt|quot|apos);");
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size();) {
    const size_t end =
        xml[at] == '<' ? xml.find('>', at) + 1 : std::min(xml.find('<', at), xml.size());
    if (end == 0) return "a tag without an end";
    const std::string part = xml.substr(at, end - at);
    at = end;
    if (std::regex_replace(part, entity, "").find('&') != std::string::npos) return "a bare &";
    if (part[0] != '<') {
      if (open.empty() && part != "\n") return "text outside the root";
      continue;
    }
    std::smatch match;
    if (!std::regex_match(part, match, tag)) return "no tag: " + part;
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2]) return "unexpected " + part;
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  for (const unsigned char c : xml) {
    if (c < 0x20 && c != '\n') return "a control character";
  }
  for (const char* forbidden : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    if (xml.find(forbidden) != std::string::npos) return "a code that is no character";
  }
  return open.empty() ? "" : "<" + open.back() + "> is open";
}

TEST(Picture, TestSeesWhatIsNotWellFormed) {
  EXPECT_EQ(fault_of("<a b=\"c\"><d/>e &amp; f</a>\n"), "");
  for (const char* broken :
       {"<a>", "<a></b>", "<a>&</a>", "<a b=\"<\"/>", "<a>\x1b</a>", "<a/>b"}) {
    EXPECT_NE(fault_of(broken), "") << broken;
  }
}

TEST(Picture, IsWellFormedSmallAndOfItself) {
  Race busy = large_race();  // as many of everything as is drawn one by one
  for (RaceRun& run : busy.runs) {
    run.documents.resize(64);
    run.pieces.resize(40);
    for (RacePiece& piece : run.pieces) piece.text = "\"\"\"\"";
  }
  for (const Race& race : {sample_race(), hostile_race(), large_race(), busy}) {
    std::string picture = race_picture(race);
    EXPECT_EQ(fault_of(picture), "");
    EXPECT_LT(picture.size(), 60'000U);
    const std::string name_space = "xmlns=\"http://www.w3.org/2000/svg\"";
    ASSERT_NE(picture.find(name_space), std::string::npos);
    picture.erase(picture.find(name_space), name_space.size());
    for (const char* outside : {"://", "<script", "@import", "<image", "<foreignObject", "url(h"}) {
      EXPECT_THAT(picture, Not(HasSubstr(outside)));
    }
    EXPECT_THAT(picture, Not(testing::ContainsRegex("<[^>]*(href|onload|onclick)=")));
  }
}

TEST(Picture, HasTheTextsOfTheRace) {
  const std::string picture = race_picture(sample_race());
  for (const char* part :
       {"Which river flows through Nelwick?", ">20 ms<", ">90 ms<", "whole answer after 30 ms",
        "80 of 80 document tokens cached", "30 of 80 document tokens cached", ">Che</tspan>",
        ">mi</tspan>", "4.5 times sooner", "the right one", "50 times slower than measured",
        "a model."}) {
    EXPECT_THAT(picture, HasSubstr(part));
  }
  EXPECT_THAT(race_picture(hostile_race()), HasSubstr("␛[2J&quot;&lt;script&gt;"));
}

double number_after(const std::string& text, const std::string& lead) {
  const size_t at = text.find(lead);
  EXPECT_NE(at, std::string::npos) << lead;
  return at == std::string::npos ? -1 : std::stod(text.substr(at + lead.size()));
}

TEST(Picture, GrowsBarsToTheMeasuredTimesByOneScale) {
  const Race race = sample_race();
  const Timeline timeline(race);
  const std::string picture = race_picture(race);
  // Lanes begin at 700 ms of the loop, and a measured ms takes 50.
  const double loop = number_after(picture, "{animation-duration:") * 1000;
  EXPECT_NEAR(loop, 700 + 100 * 50 + 6000, 10);
  const auto percent = [&](double ms) { return (700 + ms * 50) / loop * 100; };
  const std::string grown = "{transform:scaleX(0)}";
  EXPECT_NEAR(number_after(picture, "@keyframes w0{0%," + svg_number(percent(0)) + "%" + grown),
              percent(20), 0.02);
  EXPECT_NEAR(number_after(picture, "@keyframes w1{0%," + svg_number(percent(0)) + "%" + grown),
              percent(90), 0.02);
  const std::string hidden = "{0%{visibility:hidden}";
  EXPECT_NEAR(number_after(picture, "@keyframes f1" + hidden), percent(90), 0.02);
  EXPECT_NEAR(number_after(picture, "@keyframes s0-1" + hidden), percent(30), 0.02);
  EXPECT_NEAR(number_after(picture, "@keyframes verdict" + hidden), percent(100), 0.02);
  // On the same axis of 692 pixels for 100 ms.
  const auto width = [&](const std::string& name) {
    std::smatch match;
    const std::regex bar("width=\"([0-9.]+)\" height=\"14\" class=\"[a-z0-9]+ grow " + name + "\"");
    return std::regex_search(picture, match, bar) ? std::stod(match[1]) : -1;
  };
  EXPECT_NEAR(width("w0"), 692 * 0.2, 0.02);
  EXPECT_NEAR(width("a0"), 692 * 0.1, 0.02);
  EXPECT_NEAR(width("w1"), 692 * 0.9, 0.02);
  EXPECT_THAT(picture, HasSubstr("animation-iteration-count:infinite"));
}

TEST(Picture, FollowsTheReadersSchemeAndWishForStillness) {
  const std::string picture = race_picture(sample_race());
  EXPECT_THAT(picture, HasSubstr("@media (prefers-color-scheme:dark)"));
  EXPECT_THAT(picture, HasSubstr("@media (prefers-reduced-motion:reduce)"));
}

TEST(Picture, FillsWhatWasCached) {
  const std::string picture = race_picture(sample_race());
  const auto count = [&](const std::string& text) {
    size_t found = 0;
    for (size_t at = 0; (at = picture.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("height=\"24\" rx=\"3\" fill=\"#"), 4U);          // three of lazy, one of prefix
  EXPECT_EQ(count("height=\"24\" rx=\"3\" class=\"tile\"/>"), 4U);  // two of prefix, the questions
}

TEST(SvgNumbers, AreShort) {
  EXPECT_EQ(svg_number(12), "12");
  EXPECT_EQ(svg_number(12.5), "12.5");
  EXPECT_EQ(svg_number(12.3456), "12.35");
  EXPECT_EQ(svg_number(-0.001), "0");
}

}  // namespace
}  // namespace anyslot::bench

#include "html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace anyslot::bench {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Json sample_report() {
  return Json::parse(R"({
    "title": "a </script><script>alert(1)</script>", "summary": "s", "command": "anyslot bench 'x <y'",
    "facts": {"cpu": "<two> cores"},
    "figures": [{"id": "f", "title": "Rate", "text": "t & u",
      "x": {"field": "rate", "label": "requests per second", "log": true},
      "charts": [{"field": "ttft", "label": "ms", "log": true}],
      "columns": [{"field": "series", "label": "method"}, {"field": "rate", "label": "rate"},
                  {"field": "ttft", "label": "ms"}, {"field": "hits", "label": "hits"}],
      "rows": [{"series": "lazy", "rate": 0.5, "ttft": 12.3456789, "hits": null},
               {"series": "full", "rate": 0.5, "ttft": 123456.75, "hits": 7}]}]})");
}

TEST(HtmlReport, TablesHaveTheNumbersOfTheJson) {
  const std::string html = html_report(sample_report());
  std::vector<std::string> values;
  const std::regex pattern("data-value=\"([^\"]*)\"");
  for (std::sregex_iterator i(html.begin(), html.end(), pattern), end; i != end; ++i) {
    values.push_back((*i)[1]);
  }
  EXPECT_THAT(values, ElementsAre("0.5", "12.3456789", "0.5", "123456.75", "7"));
  EXPECT_THAT(html, HasSubstr(">123,457</td>"));
  EXPECT_THAT(html, HasSubstr(">-</td>"));
}

TEST(HtmlReport, HoldsTheReportItself) {
  const std::string html = html_report(sample_report());
  const std::string begin = "<script type=\"application/json\" id=\"report\">";
  const size_t at = html.find(begin);
  ASSERT_NE(at, std::string::npos);
  const size_t end = html.find("</script>", at);
  const std::string text = html.substr(at + begin.size(), end - at - begin.size());
  EXPECT_EQ(Json::parse(text), sample_report());
}

TEST(HtmlReport, TextsStayTextsAndNothingIsFetched) {
  const std::string html = html_report(sample_report());
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("&lt;two&gt; cores"));
  EXPECT_THAT(html, HasSubstr("x &lt;y"));
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

TEST(HtmlReport, OfNothingIsAPage) {
  const std::string html = html_report(Json::object());
  EXPECT_THAT(html, HasSubstr("</html>"));
}

}  // namespace
}  // namespace anyslot::bench

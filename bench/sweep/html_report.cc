#include "html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "chart.h"
#include "html_text.h"

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

const Json& list_of(const Json& json, std::string_view key) {
  static const Json kEmpty = Json::array();
  const auto found = json.find(key);
  return found != json.end() ? *found : kEmpty;
}

/// The lines of a figure's charts, in the order in which they first come.
std::vector<std::string> series_of(const Json& figure) {
  std::vector<std::string> names;
  for (const Json& row : list_of(figure, "rows")) {
    std::string name = text_of(row, "series");
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

double number_of(const Json& row, const std::string& field) {
  const auto found = row.find(field);
  return found != row.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string chart_html(const Json& figure, const Json& description) {
  const Json& x = figure.at("x");
  const std::string x_field = text_of(x, "field");
  const std::string y_field = text_of(description, "field");
  Chart chart{.title = text_of(figure, "title"),
              .x_label = text_of(x, "label"),
              .y_label = text_of(description, "label"),
              .log_x = flag_of(x, "log"),
              .log_y = flag_of(description, "log"),
              .series = {}};
  const std::vector<std::string> names = series_of(figure);
  for (size_t i = 0; i < names.size(); ++i) {
    ChartSeries series{names[i], static_cast<int>(i) % kChartStyles, {}};
    for (const Json& row : list_of(figure, "rows")) {
      if (text_of(row, "series") != names[i]) continue;
      series.points.push_back({number_of(row, x_field), number_of(row, y_field)});
    }
    chart.series.push_back(std::move(series));
  }
  return fmt::format("<figure><figcaption>{}{}</figcaption>\n{}</figure>\n",
                     escaped_html(chart.y_label), chart.log_y ? " (logarithmic)" : "",
                     chart_svg(chart));
}

/// A number as it is read, and beside it as it was measured.
std::string cell_html(const Json& row, const std::string& field) {
  const auto found = row.find(field);
  if (found == row.end() || found->is_null()) return "<td class=\"number\">-</td>";
  if (found->is_number()) {
    return fmt::format("<td class=\"number\" data-value=\"{}\">{}</td>", found->dump(),
                       short_number(found->get<double>()));
  }
  return fmt::format("<td>{}</td>",
                     escaped_html(found->is_string() ? found->get<std::string>() : found->dump()));
}

/// Of a figure or of the ranking. It can be wider than the page: then it scrolls, by keys too.
std::string table_html(const Json& figure, const std::string& label,
                       const std::vector<std::string>& names) {
  std::string html = fmt::format(
      "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>",
      escaped_html(label));
  for (const Json& column : list_of(figure, "columns")) {
    const bool is_number =
        !list_of(figure, "rows").empty() &&
        std::isfinite(number_of(list_of(figure, "rows").front(), text_of(column, "field")));
    html += fmt::format("<th scope=\"col\"{}>{}</th>", is_number ? " class=\"number\"" : "",
                        escaped_html(text_of(column, "label")));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& row : list_of(figure, "rows")) {
    const auto style = std::ranges::find(names, text_of(row, "series")) - names.begin();
    html += fmt::format("<tr class=\"s{}\">", style % kChartStyles);
    for (const Json& column : list_of(figure, "columns")) {
      html += cell_html(row, text_of(column, "field"));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string figure_html(const Json& figure) {
  std::string html =
      fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n<p>{}</p>\n<div class=\"charts\">\n",
                  escaped_html(text_of(figure, "id")), escaped_html(text_of(figure, "title")),
                  escaped_html(text_of(figure, "text")));
  for (const Json& chart : list_of(figure, "charts")) html += chart_html(figure, chart);
  return html + "</div>\n<details open><summary>The numbers</summary>\n" +
         table_html(figure, "The numbers of: " + text_of(figure, "title"), series_of(figure)) +
         "</details>\n</section>\n";
}

/// Methods have the colours that they have in the first figure.
std::string ranking_html(const Json& report) {
  const auto ranking = report.find("ranking");
  if (ranking == report.end() || !ranking->is_object()) return "";
  const Json& figures = list_of(report, "figures");
  return "<section id=\"ranking\">\n<h2>Who answers first, and why</h2>\n<p>At the highest "
         "rate, documents in skewed popularity. A token that comes from the cache is not computed "
         "again; KV that requests share is held, and read, once.</p>\n" +
         table_html(*ranking, "Who answers first, and why",
                    series_of(figures.empty() ? *ranking : figures.front())) +
         "</section>\n";
}

std::string head_html(const Json& report) {
  const std::string title = escaped_html(text_of(report, "title"));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n",
      title, chart_style(),
      R"(body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 8px}
@media (max-width:560px){h1{font-size:22px}}
h2{font-size:20px;margin:48px 0 4px}
p{margin:0 0 12px;max-width:76ch}
code{font:13px/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
nav a,summary{color:var(--s0)}
nav{margin:16px 0}nav a{display:inline-block;margin-right:16px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;font-size:14px;margin:16px 0}
dt{color:var(--faint)}dd{margin:0;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:16px 32px}
figure{margin:8px 0}figcaption{font-weight:600;font-size:14px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:8px 0}
th,td{padding:3px 16px 3px 0;border-bottom:1px solid var(--grid);white-space:nowrap}
th,td{text-align:left}
th:first-child,td:first-child{position:sticky;left:0;background:var(--page)}
th{color:var(--faint);font-weight:600}
th.number,td.number{text-align:right}
tr td:first-child{color:var(--c);font-weight:600}
)");
}

std::string facts_html(const Json& report) {
  std::string html = "<dl>\n";
  html += fmt::format("<dt>command</dt><dd><code>{}</code></dd>\n",
                      escaped_html(text_of(report, "command")));
  for (const auto& [name, value] : list_of(report, "facts").items()) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped_html(name),
                        escaped_html(value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return html + "</dl>\n";
}

}  // namespace

std::string html_report(const Json& report) {
  std::string html = head_html(report);
  html +=
      fmt::format("<body>\n<main>\n<h1>{}</h1>\n<p>{}</p>\n",
                  escaped_html(text_of(report, "title")), escaped_html(text_of(report, "summary")));
  html += ranking_html(report) + facts_html(report) + "<nav aria-label=\"Figures\">";
  for (const Json& figure : list_of(report, "figures")) {
    html += fmt::format("<a href=\"#{}\">{}</a>", escaped_html(text_of(figure, "id")),
                        escaped_html(text_of(figure, "title")));
  }
  html += "</nav>\n";
  for (const Json& figure : list_of(report, "figures")) html += figure_html(figure);
  html += "</main>\n<script type=\"application/json\" id=\"report\">" +
          escaped_script(report.dump()) + "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace anyslot::bench

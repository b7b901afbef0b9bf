#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "html_text.h"

namespace anyslot::bench {

namespace {

// There is room for text of 19, which the style asks for on a phone; elsewhere it is 12 to 13.
constexpr double kWidth = 540;
constexpr double kHeight = 340;
constexpr double kLeft = 76;
constexpr double kRight = 88;  // the lines' names stand there
constexpr double kTop = 20;
constexpr double kBottom = 62;
constexpr double kLineHeight = 20;   // of text
constexpr double kLetterWidth = 11;  // of a number, at most
constexpr double kLogMargin = 1.15;  // between the axis and the smallest value

/// Values of one axis and where they stand.
class Axis {
 public:
  Axis(double low, double high, bool logarithmic, double from, double to)
      : low_(low), high_(high), logarithmic_(logarithmic), from_(from), to_(to) {}

  double place(double value) const {
    const double span = scaled(high_) - scaled(low_);
    const double share = span > 0 ? (scaled(value) - scaled(low_)) / span : 0.5;
    return from_ + share * (to_ - from_);
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }

  double low_;
  double high_;
  bool logarithmic_;
  double from_;
  double to_;
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

bool is_drawn(const Chart& chart, const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!chart.log_x || point.x > 0) &&
         (!chart.log_y || point.y > 0);
}

std::vector<ChartPoint> drawn_points(const Chart& chart, const ChartSeries& series) {
  std::vector<ChartPoint> points;
  std::ranges::copy_if(series.points, std::back_inserter(points),
                       [&](const ChartPoint& point) { return is_drawn(chart, point); });
  std::ranges::sort(points, {}, &ChartPoint::x);
  return points;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view css,
                    const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                     x, y, anchor, css, escaped_html(text));
}

std::string line_between(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, css);
}

/// A few values stand on the axis themselves.
std::vector<double> x_ticks(const std::set<double>& values, const Axis& axis, bool logarithmic) {
  constexpr size_t kMostValues = 9;
  if (values.size() <= kMostValues) return {values.begin(), values.end()};
  return logarithmic ? round_log_ticks(axis.low(), axis.high())
                     : round_ticks(axis.low(), axis.high(), 6);
}

/// The marker of a style, about 8 wide.
std::string marker(int style, double x, double y) {
  switch (style) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\">", x, y);
    case 1:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\">", x - 4, y - 4);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l5 9h-10z\">", x, y - 5.5);
    case 3:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z\">", x, y - 5.5);
    case 4:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h10l-5 9z\">", x - 5, y - 3.5);
    default:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"5\">", x - 5,
                         y - 2.5);
  }
}

std::string_view marker_end(int style) {
  switch (style) {
    case 0:
      return "</circle>";
    case 1:
    case 5:
      return "</rect>";
    default:
      return "</path>";
  }
}

std::string series_svg(const Chart& chart, const ChartSeries& series, const Axis& x,
                       const Axis& y) {
  const std::vector<ChartPoint> points = drawn_points(chart, series);
  std::string line;
  std::string markers;
  for (const ChartPoint& point : points) {
    const double px = x.place(point.x);
    const double py = y.place(point.y);
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", px, py);
    markers += fmt::format("{}<title>{}: {} at {}</title>{}\n", marker(series.style, px, py),
                           escaped_html(series.name), short_number(point.y), short_number(point.x),
                           marker_end(series.style));
  }
  if (points.empty()) return "";
  return fmt::format("<g class=\"series s{}\">\n<path class=\"line\" d=\"{}\"/>\n{}</g>\n",
                     series.style, line, markers);
}

/// The names beside the lines' ends, moved apart where they would overlap.
std::string names_svg(const Chart& chart, const Axis& x, const Axis& y) {
  struct Name {
    double x;
    double y;
    const ChartSeries* series;
  };
  std::vector<Name> names;
  for (const ChartSeries& series : chart.series) {
    const std::vector<ChartPoint> points = drawn_points(chart, series);
    if (points.empty()) continue;
    names.push_back({x.place(points.back().x), y.place(points.back().y), &series});
  }
  std::ranges::sort(names, {}, &Name::y);
  const double lowest = kHeight - kBottom;
  for (size_t i = 0; i < names.size(); ++i) {
    const double above = i == 0 ? kTop : names[i - 1].y + kLineHeight;
    names[i].y = std::max(names[i].y, above);
  }
  double below = lowest;
  for (size_t i = names.size(); i-- > 0; below = names[i].y - kLineHeight) {
    names[i].y = std::min(names[i].y, below);
  }
  std::string svg;
  for (const Name& name : names) {
    svg += text_at(kWidth - kRight + 12, name.y + 4, "start",
                   fmt::format("name s{}", name.series->style), name.series->name);
  }
  return svg;
}

std::string axes_svg(const Chart& chart, const Axis& x, const Axis& y,
                     const std::set<double>& x_values) {
  const double bottom = kHeight - kBottom;
  std::string svg;
  const std::vector<double> y_ticks =
      chart.log_y ? round_log_ticks(y.low(), y.high()) : round_ticks(y.low(), y.high(), 5);
  for (const double tick : y_ticks) {
    const double at = y.place(tick);
    svg += line_between(kLeft, at, kWidth - kRight, at, "grid");
    svg += text_at(kLeft - 8, at + 4, "end", "tick", short_number(tick));
  }
  svg += line_between(kLeft, bottom, kWidth - kRight, bottom, "axis");
  double last_end = 0;
  for (const double tick : x_ticks(x_values, x, chart.log_x)) {
    const double at = x.place(tick);
    const std::string text = short_number(tick);
    const double half = static_cast<double>(text.size()) * kLetterWidth / 2;
    if (at - half < last_end) continue;  // would stand on the one before
    last_end = at + half;
    svg += line_between(at, bottom, at, bottom + 5, "axis");
    svg += text_at(at, bottom + 22, "middle", "tick", text);
  }
  svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "label", chart.x_label);
  return svg;
}

std::string format_trimmed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= 0.8 * rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) {
    ticks.push_back(i * step + 0.0);  // no -0
  }
  return ticks;
}

std::vector<double> round_log_ticks(double low, double high) {
  const double decades = std::log10(high / low);
  std::vector<double> factors = {1.0};
  if (decades < 3) factors = {1.0, 2.0, 5.0};
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(low)); power <= std::log10(high) + 1e-9; ++power) {
    for (const double factor : factors) {
      const double tick = factor * std::pow(10.0, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  if (ticks.size() < 2) return {low, high};
  return ticks;
}

std::string short_number(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e9) return format_trimmed(value / 1e9, 2) + "G";
  if (magnitude >= 1e6) return format_trimmed(value / 1e6, 2) + "M";
  if (magnitude >= 1000) {
    const std::string digits = fmt::format("{:.0f}", magnitude);
    const size_t head = digits.size() - 3;
    return (value < 0 ? "-" : "") + digits.substr(0, head) + "," + digits.substr(head);
  }
  if (magnitude >= 100) return format_trimmed(value, 0);
  if (magnitude >= 10) return format_trimmed(value, 1);
  if (magnitude >= 1) return format_trimmed(value, 2);
  return format_trimmed(value, 4);
}

std::string chart_svg(const Chart& chart) {
  Range x_range;
  Range y_range;
  std::set<double> x_values;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : drawn_points(chart, series)) {
      x_range.add(point.x);
      y_range.add(point.y);
      x_values.insert(point.x);
    }
  }
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight,
      escaped_html(chart.title + ": " + chart.y_label + " over " + chart.x_label));
  if (x_range.empty()) {
    return svg + text_at(kWidth / 2, kHeight / 2, "middle", "label", "nothing was measured") +
           "</svg>\n";
  }
  if (!chart.log_y) y_range.low = std::min(0.0, y_range.low);
  if (chart.log_y) y_range = {y_range.low / kLogMargin, y_range.high * kLogMargin};
  if (!(y_range.high > y_range.low)) y_range.high = y_range.low + 1;
  const Axis x(x_range.low, x_range.high, chart.log_x, kLeft + 14, kWidth - kRight - 8);
  const Axis y(y_range.low, chart.log_y ? y_range.high : y_range.high * 1.04, chart.log_y,
               kHeight - kBottom, kTop);
  svg += axes_svg(chart, x, y, x_values);
  for (const ChartSeries& series : chart.series) svg += series_svg(chart, series, x, y);
  return svg + names_svg(chart, x, y) + "</svg>\n";
}

std::string chart_style() {
  return R"(svg{display:block;width:100%;height:auto;font-size:12px}
svg .grid{stroke:var(--grid)}
svg .axis{stroke:var(--faint)}
svg .tick,svg .label{fill:var(--faint)}
svg .series{color:var(--c);fill:var(--c);stroke:var(--page);stroke-width:1.5}
svg .line{fill:none;stroke:var(--c);stroke-width:2.25;stroke-linejoin:round}
svg .name{fill:var(--c);font-weight:600;font-size:13px}
@media (max-width:560px){svg,svg .name{font-size:19px}}
.s0{--c:var(--s0)}.s1{--c:var(--s1)}.s2{--c:var(--s2)}.s3{--c:var(--s3)}.s4{--c:var(--s4)}.s5{--c:var(--s5)}
:root{--page:#fff;--ink:#1c2026;--faint:#59616d;--grid:#e4e7ec;--s0:#0b62c4;--s1:#b4500c;--s2:#0f7a54;--s3:#7a3fb8;--s4:#5c6470;--s5:#a8246a}
@media (prefers-color-scheme:dark){:root{--page:#14171c;--ink:#e8ebf0;--faint:#a3acb9;--grid:#2b313a;--s0:#6cb0ff;--s1:#f59a52;--s2:#4fcf9c;--s3:#c39bf5;--s4:#b3bcc9;--s5:#f383b6}}
)";
}

}  // namespace anyslot::bench

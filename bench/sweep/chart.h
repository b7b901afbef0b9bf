#pragma once

#include <string>
#include <vector>

namespace anyslot::bench {

struct ChartPoint {
  double x = 0;
  double y = 0;
};

/// A line of a chart. Points that are not finite, or not positive on a logarithmic axis, are left
/// out.
struct ChartSeries {
  std::string name;
  int style = 0;  // colour and marker, 0 to kChartStyles - 1
  std::vector<ChartPoint> points;
};

inline constexpr int kChartStyles = 6;

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  bool log_y = false;  // else the axis begins at 0
  std::vector<ChartSeries> series;
};

/// The chart as an <svg> element, to be styled by chart_style(). Colours follow the page's scheme;
/// lines are told apart by their names and markers too.
std::string chart_svg(const Chart& chart);

/// The rules of a style sheet that charts need.
std::string chart_style();

/// Round numbers from `low` to `high`, about `count` of them: the ticks of an axis. On a
/// logarithmic axis powers of 10, with 2 and 5 between them where there is room.
std::vector<double> round_ticks(double low, double high, int count);
std::vector<double> round_log_ticks(double low, double high);

/// Few digits: "0", "0.25", "12.5", "1,500", "2.5M".
std::string short_number(double value);

}  // namespace anyslot::bench

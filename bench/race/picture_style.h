#pragma once

#include <cstddef>
#include <string>

#include "race_result.h"

namespace anyslot::bench {

/// When things happen in the picture of a race, which shows it again and again.
class Timeline {
 public:
  explicit Timeline(const Race& race);

  /// Milliseconds on the screen for one that was measured.
  double scale() const { return scale_; }
  double loop_seconds() const { return loop_ms_ / 1000; }
  /// The share of a loop, in percent, at which the lanes are `ms` old.
  double percent(double ms) const;

 private:
  double scale_;
  double loop_ms_;
};

/// The style sheet of the picture: colours of both schemes, and no movement for who asks for none.
std::string picture_style(const Timeline& timeline);

/// Rules by which what has the class `name` appears when the lanes are `ms` old.
std::string appearing(const std::string& name, const Timeline& timeline, double ms);
/// Rules by which it grows from its left edge between two moments.
std::string growing(const std::string& name, const Timeline& timeline, double from_ms,
                    double to_ms);

}  // namespace anyslot::bench

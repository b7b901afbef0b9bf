#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "race_result.h"

namespace anyslot::bench {

/// A replay needs so many columns.
inline constexpr int kMinColumns = 60;

struct ViewStyle {
  int columns = 80;  // of the terminal, kMinColumns at least
  bool colours = false;
};

/// The lanes of a race in lines of a terminal, at any moment of the replay. Lines are shorter than
/// the terminal is wide; texts of documents, answers and servers are shown by visible_line().
class TerminalView {
 public:
  /// `race` must outlive the view.
  TerminalView(const Race& race, const ViewStyle& style);

  /// The question and what it is asked about.
  std::vector<std::string> heading() const;
  /// The lanes as they were `ms` after their begin, on one scale; always as many lines.
  std::vector<std::string> lanes(double ms) const;
  std::vector<std::string> verdict() const;

 private:
  struct Answer {
    std::string text;  // as it is shown
    std::vector<size_t> piece_ends;
  };

  std::vector<std::string> lane(size_t number, double ms) const;
  std::string title(size_t number) const;
  std::string prompt(const RaceRun& run) const;
  std::string bar(size_t number, double ms) const;
  std::vector<std::string> answer_lines(size_t number, double ms) const;
  std::string legend() const;
  std::string painted(const std::string& text, const std::string& codes) const;
  std::vector<std::string> wrapped(const std::string& text, const std::string& codes) const;

  const Race& race_;
  ViewStyle style_;
  size_t width_;  // of lines
  std::vector<Answer> answers_;
};

/// The same for what is no terminal: a table of the runs, the answers and the verdict.
std::string plain_result(const Race& race);

}  // namespace anyslot::bench

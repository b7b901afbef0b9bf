#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace anyslot::cli {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kRedrawInterval{100};

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

void write_to_terminal(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string progress_text(const std::string& what, int64_t done, int64_t total,
                          double elapsed_seconds) {
  const int64_t shown = std::clamp<int64_t>(done, 0, std::max<int64_t>(total, 0));
  const auto filled = static_cast<size_t>(total > 0 ? shown * kBarWidth / total : kBarWidth);
  std::string text = fmt::format("{} [{}{}] {}/{}", what, std::string(filled, '#'),
                                 std::string(kBarWidth - filled, '.'), shown, total);
  if (shown > 0 && shown < total) {
    const double left =
        elapsed_seconds * static_cast<double>(total - shown) / static_cast<double>(shown);
    text += fmt::format(", {} left", duration_text(left));
  }
  return text;
}

ProgressBar::ProgressBar(std::string what, int64_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()) {
  update(0);
}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(int64_t done) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (drawn_ && done < total_ && now - last_draw_ < kRedrawInterval) return;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  write_to_terminal("\r\x1b[K" + progress_text(what_, done, total_, elapsed));
  drawn_ = true;
  last_draw_ = now;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  write_to_terminal("\r\x1b[K");
  drawn_ = false;
}

}  // namespace anyslot::cli

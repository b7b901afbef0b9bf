#include "picture_style.h"

#include <fmt/format.h>

#include "replay.h"
#include "svg_text.h"

namespace anyslot::bench {

namespace {

constexpr double kLeadMs = 700;   // before the lanes begin
constexpr double kHoldMs = 6000;  // the verdict, after they have ended

}  // namespace

Timeline::Timeline(const Race& race)
    : scale_(replay_scale(race_end_ms(race))),
      loop_ms_(kLeadMs + race_end_ms(race) * scale_ + kHoldMs) {}

double Timeline::percent(double ms) const { return 100 * (kLeadMs + ms * scale_) / loop_ms_; }

std::string picture_style(const Timeline& timeline) {
  constexpr std::string_view kRules = R"(
svg{--ground:#f4f5f2;--surface:#fff;--ink:#191c1f;--soft:#53595f;--line:#d7dad5;--edge:#7d848b;--first:#0b6e76;--first-rest:#7fc4c6;--second:#a65a00;--second-rest:#e8b878}
@media (prefers-color-scheme:dark){svg{--ground:#131618;--surface:#1c2023;--ink:#edf0f1;--soft:#a9b1b7;--line:#343a3f;--edge:#838b92;--first:#5fc9cc;--first-rest:#2f7377;--second:#f0a54a;--second-rest:#8a5a1d}}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;fill:var(--ink)}
.question{font-size:18px;font-weight:650}
.name{font-size:16px;font-weight:700}
.big{font-size:20px;font-weight:700}
.answer{font-size:15px}
.small{font-size:12.5px}
.letter{font-size:11.5px;font-weight:650;text-anchor:middle}
.on-tile{fill:#16191b}
.soft{fill:var(--soft)}
.end{text-anchor:end}
.lane0{fill:var(--first)}
.lane1{fill:var(--second)}
.rest0{fill:var(--first-rest)}
.rest1{fill:var(--second-rest)}
.ground{fill:var(--ground)}
.card{fill:var(--surface);stroke:var(--line)}
.track{fill:var(--ground);stroke:var(--line)}
.tile{fill:url(#hatch);stroke:var(--edge);stroke-dasharray:3 2}
.whole{stroke-dasharray:none}
.hatch{stroke:var(--line);stroke-width:2}
.surface{fill:var(--surface)}
.tick{stroke:var(--edge)}
.show{animation-timing-function:step-end}
.grow{animation-timing-function:linear;transform-box:fill-box;transform-origin:0 50%}
)";
  return fmt::format(
      "{}.show,.grow{{animation-duration:{}s;animation-iteration-count:infinite}}\n"
      "@media (prefers-reduced-motion:reduce){{.show,.grow{{animation:none!important}}}}\n",
      kRules, svg_number(timeline.loop_seconds()));
}

std::string appearing(const std::string& name, const Timeline& timeline, double ms) {
  return fmt::format(
      ".{0}{{animation-name:{0}}}"
      "@keyframes {0}{{0%{{visibility:hidden}}{1}%,100%{{visibility:visible}}}}\n",
      name, svg_number(timeline.percent(ms)));
}

std::string growing(const std::string& name, const Timeline& timeline, double from_ms,
                    double to_ms) {
  return fmt::format(
      ".{0}{{animation-name:{0}}}@keyframes {0}{{0%,{1}%{{transform:scaleX(0)}}"
      "{2}%,100%{{transform:scaleX(1)}}}}\n",
      name, svg_number(timeline.percent(from_ms)), svg_number(timeline.percent(to_ms)));
}

}  // namespace anyslot::bench

#include "text/normalizer.h"

#include <utf8proc.h>

#include "text/rewriter.h"
#include "text/unicode_form.h"
#include "text/utf8.h"

namespace anyslot {

namespace {

Expected<MarkedText> apply(const UnicodeFormStep& step, const MarkedText& source) {
  return in_unicode_form(step.form, source);
}

std::string in_lower_case(char32_t code_point) {
  constexpr char32_t kDottedI = 0x130;  // the only one whose small form is two characters
  if (code_point == kDottedI) return "i\u0307";
  std::string lower;
  append_code_point(
      lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
  return lower;
}

Expected<MarkedText> apply(const LowercaseStep& /*step*/, const MarkedText& source) {
  Rewriter writer(source);
  const std::string_view text = source.text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at + next_utf8_unit(text.substr(at)).size;
    writer.replace(at, end, in_lower_case(first_code_point(text.substr(at))));
    at = end;
  }
  return writer.take();
}

Expected<MarkedText> apply(const TrimStep& step, const MarkedText& source) {
  const std::string_view text = source.text;
  size_t begin = 0;
  size_t end = text.size();
  while (step.left && begin < end && is_white_space(first_code_point(text.substr(begin)))) {
    begin += next_utf8_unit(text.substr(begin)).size;
  }
  while (step.right && end > begin && is_white_space(last_code_point(text.substr(0, end)))) {
    std::string last;
    append_code_point(last, last_code_point(text.substr(0, end)));
    end -= last.size();
  }
  Rewriter writer(source);
  writer.keep(begin, end);
  return writer.take();
}

Expected<MarkedText> apply(const PrependStep& step, const MarkedText& source) {
  Rewriter writer(source);
  if (!source.text.empty()) writer.replace(0, 0, step.text);
  writer.keep(0, source.text.size());
  return writer.take();
}

Expected<MarkedText> apply(const ReplaceStep& step, const MarkedText& source) {
  Rewriter writer(source);
  size_t at = 0;
  const Status status = step.pattern.scan(source.text, [&](std::string_view part, bool is_match) {
    const size_t end = at + part.size();
    if (is_match) {
      writer.replace(at, end, step.content);
    } else {
      writer.keep(at, end);
    }
    at = end;
  });
  if (!status.ok()) return status;
  return writer.take();
}

}  // namespace

Expected<MarkedText> Normalizer::run(std::string_view text,
                                     std::span<const ByteRange> markup) const {
  MarkedText current{std::string(text), {markup.begin(), markup.end()}};
  for (const Step& step : steps_) {
    Expected<MarkedText> next =
        std::visit([&](const auto& kind) { return apply(kind, current); }, step);
    if (!next) return next.status();
    current = *std::move(next);
  }
  return current;
}

}  // namespace anyslot

#include "text/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "text/rewriter.h"
#include "text/utf8.h"

namespace anyslot {

namespace {

// From here on characters may combine with what stands before them.
constexpr char32_t kFirstCombining = 0x300;
constexpr char32_t kFirstHan = 0x4E00;  // the unified ideographs have no decomposition
constexpr char32_t kLastHan = 0x9FFF;

using CodePoints = std::vector<utf8proc_int32_t>;

class FormWriter {
 public:
  FormWriter(UnicodeForm form, const MarkedText& source)
      : composes_(form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc),
        compatible_(form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd),
        source_(source),
        writer_(source) {}

  /// Cuts the text where nothing can combine across and treats each stretch by itself.
  MarkedText run() {
    const std::string_view text = source_.text;
    size_t begin = 0;  // of the stretch
    for (size_t at = 0; at < text.size();) {
      const size_t plain = plain_run(text.substr(at));
      if (plain > 0) {
        if (at > begin) write(begin, at);
        kept_end_ = begin = at += plain;
        continue;
      }
      if (at > begin && begins_stretch(first_code_point(text.substr(at)))) {
        write(begin, at);
        begin = at;
      }
      at += next_utf8_unit(text.substr(at)).size;
    }
    if (begin < text.size()) write(begin, text.size());
    flush();
    return writer_.take();
  }

 private:
  /// The ASCII characters that `text` begins with, less the last one before another character,
  /// which may combine with it.
  static size_t plain_run(std::string_view text) {
    size_t n = 0;
    while (n < text.size() && static_cast<uint8_t>(text[n]) < 0x80) ++n;
    return n == text.size() || n == 0 ? n : n - 1;
  }

  bool begins_stretch(char32_t code_point) const {
    if (code_point < kFirstCombining) return true;
    if (code_point >= kFirstHan && code_point <= kLastHan) return true;
    std::array<utf8proc_int32_t, 32> parts{};
    const utf8proc_ssize_t count = decompose(code_point, parts.data(), parts.size());
    if (count < 1 || count > static_cast<utf8proc_ssize_t>(parts.size())) return false;
    const utf8proc_int32_t first = parts[0];
    const utf8proc_category_t category = utf8proc_category(first);
    const bool is_mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                         category == UTF8PROC_CATEGORY_ME;
    // Hangul's vowels and final consonants join the syllable before them.
    const bool is_jamo = (first >= 0x1160 && first <= 0x11FF);
    return !is_mark && !is_jamo && utf8proc_get_property(first)->combining_class == 0;
  }

  utf8proc_ssize_t decompose(char32_t code_point, utf8proc_int32_t* out, size_t capacity) const {
    const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                        (compatible_ ? static_cast<int>(UTF8PROC_COMPAT) : 0);
    int boundary = 0;
    return utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), out,
                                   static_cast<utf8proc_ssize_t>(capacity),
                                   static_cast<utf8proc_option_t>(options), &boundary);
  }

  void write(size_t begin, size_t end) {
    const std::string_view stretch = std::string_view(source_.text).substr(begin, end - begin);
    if (stays(stretch)) {
      kept_end_ = end;
      return;
    }
    flush();
    const std::string changed = normalized(stretch);
    if (changed != stretch) {
      kept_begin_ = end;
      writer_.replace(begin, end, changed);
    }
    kept_end_ = end;
  }

  /// Hands on what was found unchanged since the last change.
  void flush() {
    if (kept_end_ > kept_begin_) writer_.keep(kept_begin_, kept_end_);
    kept_begin_ = kept_end_;
  }

  /// Whether the stretch is one of the characters that every text is full of.
  bool stays(std::string_view stretch) const {
    if (stretch.size() == 1) return true;  // ASCII
    const char32_t code_point = first_code_point(stretch);
    if (next_utf8_unit(stretch).size != stretch.size()) return false;
    if (code_point >= kFirstHan && code_point <= kLastHan) return true;
    return composes_ && !compatible_ && code_point < kFirstCombining;
  }

  std::string normalized(std::string_view stretch) const {
    CodePoints points;
    while (!stretch.empty()) {
      const size_t size = points.size();
      points.resize(size + 32);  // no character has more parts
      const utf8proc_ssize_t count = decompose(first_code_point(stretch), &points[size], 32);
      if (count < 0 || count > 32) throw std::logic_error(utf8proc_errmsg(count));
      points.resize(size + static_cast<size_t>(count));
      stretch.remove_prefix(next_utf8_unit(stretch).size);
    }
    put_marks_in_order(points);
    if (composes_) {
      const auto count = utf8proc_normalize_utf32(
          points.data(), static_cast<utf8proc_ssize_t>(points.size()),
          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      if (count < 0) throw std::logic_error(utf8proc_errmsg(count));
      points.resize(static_cast<size_t>(count));
    }
    std::string text;
    for (const utf8proc_int32_t point : points) {
      append_code_point(text, static_cast<char32_t>(point));
    }
    return text;
  }

  /// utf8proc has this too, but in quadratic time.
  static void put_marks_in_order(CodePoints& points) {
    const auto class_of = [](utf8proc_int32_t point) {
      return utf8proc_get_property(point)->combining_class;
    };
    const auto is_starter = [&](utf8proc_int32_t point) { return class_of(point) == 0; };
    for (auto begin = points.begin(); begin != points.end();) {
      const auto end = std::find_if(begin, points.end(), is_starter);
      std::stable_sort(begin, end, [&](auto a, auto b) { return class_of(a) < class_of(b); });
      begin = end == points.end() ? end : end + 1;
    }
  }

  bool composes_;
  bool compatible_;
  const MarkedText& source_;
  Rewriter writer_;
  size_t kept_begin_ = 0;  // [kept_begin_, kept_end_): unchanged and not handed on yet
  size_t kept_end_ = 0;
};

}  // namespace

MarkedText in_unicode_form(UnicodeForm form, const MarkedText& source) {
  return FormWriter(form, source).run();
}

}  // namespace anyslot

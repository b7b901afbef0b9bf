#include "text/rewriter.h"

#include <algorithm>

namespace anyslot {

void Rewriter::keep(size_t begin, size_t end) {
  const size_t out = result_.text.size();
  result_.text.append(source_.text, begin, end - begin);
  const std::vector<ByteRange>& markup = source_.markup;
  while (range_ < markup.size() && markup[range_].end <= begin) ++range_;
  for (size_t i = range_; i < markup.size() && markup[i].begin < end; ++i) {
    const size_t low = std::max(markup[i].begin, begin);
    const size_t high = std::min(markup[i].end, end);
    mark(i, out + (low - begin), out + (high - begin));
  }
}

void Rewriter::replace(size_t begin, size_t end, std::string_view by) {
  const size_t out = result_.text.size();
  result_.text += by;
  const std::vector<ByteRange>& markup = source_.markup;
  while (range_ < markup.size() && markup[range_].end <= begin) ++range_;
  if (range_ == markup.size() || by.empty()) return;
  const ByteRange& range = markup[range_];
  if (range.begin <= begin && end <= range.end) mark(range_, out, result_.text.size());
}

void Rewriter::mark(size_t range, size_t begin, size_t end) {
  std::vector<ByteRange>& marked = result_.markup;
  if (begin == end) return;
  if (range == last_marked_ && marked.back().end == begin) {
    marked.back().end = end;
  } else {
    marked.push_back({begin, end});
    last_marked_ = range;
  }
}

}  // namespace anyslot

#pragma once

#include <string_view>
#include <utility>

#include "text/normalizer.h"

namespace anyslot {

/// Builds what a step of a normalizer makes of a text, from its beginning to its end, and keeps
/// account of what is markup.
class Rewriter {
 public:
  explicit Rewriter(const MarkedText& source) : source_(source) {
    result_.text.reserve(source.text.size());
  }

  /// Takes over the bytes [begin, end) of the source.
  void keep(size_t begin, size_t end);
  /// Writes `by` in their place. With begin == end it counts as a part of what stands behind.
  void replace(size_t begin, size_t end, std::string_view by);

  MarkedText take() { return std::move(result_); }

 private:
  void mark(size_t range, size_t begin, size_t end);

  const MarkedText& source_;
  MarkedText result_;
  size_t range_ = 0;            // of the source's markup: those before it end where we are
  size_t last_marked_ = kNone;  // the range that the last one of the result is of
  static constexpr size_t kNone = static_cast<size_t>(-1);
};

}  // namespace anyslot

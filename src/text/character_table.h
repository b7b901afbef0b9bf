#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace anyslot {

/// A table from characters to token ids, in pages of neighbours.
class CharacterTable {
 public:
  static constexpr int32_t kNone = -1;

  void set(char32_t character, int32_t id) {
    std::unique_ptr<Page>& page = pages_.at(character / kPageSize);
    if (!page) {
      page = std::make_unique<Page>();
      page->fill(kNone);
    }
    (*page)[character % kPageSize] = id;
  }

  /// kNone for a character without a token.
  int32_t find(char32_t character) const {
    const std::unique_ptr<Page>& page = pages_[character / kPageSize];
    return page ? (*page)[character % kPageSize] : kNone;
  }

 private:
  static constexpr size_t kPageSize = 256;
  static constexpr size_t kNumPages = 0x110000 / kPageSize;
  using Page = std::array<int32_t, kPageSize>;

  std::vector<std::unique_ptr<Page>> pages_ = std::vector<std::unique_ptr<Page>>(kNumPages);
};

}  // namespace anyslot

#include "text/word_cache.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace anyslot {

namespace {

constexpr size_t kMinEntries = 16;
constexpr size_t kMaxEntries = 65536;  // 1.5 MiB, for a text of half a megabyte and more
constexpr size_t kBytesPerWord = 8;    // of a text, roughly
constexpr size_t kMaxWordBytes = size_t{4} << 20;

}  // namespace

WordCache::WordCache(size_t text_size)
    : entries_(std::bit_ceil(std::clamp(text_size / kBytesPerWord, kMinEntries, kMaxEntries))) {}

std::span<const int32_t> WordCache::find(std::string_view word) {
  last_hash_ = std::hash<std::string_view>{}(word);
  const Entry& entry = entries_[last_hash_ & (entries_.size() - 1)];
  if (entry.num_ids == 0 || entry.hash != last_hash_) return {};
  if (std::string_view(words_).substr(entry.word_begin, entry.word_size) != word) return {};
  return std::span(ids_).subspan(entry.ids_begin, entry.num_ids);
}

void WordCache::put(std::string_view word, std::span<const int32_t> ids) {
  if (ids.empty() || word.size() > kMaxWord) return;
  if (words_.size() > kMaxWordBytes) {
    words_.clear();
    ids_.clear();
    std::ranges::fill(entries_, Entry{});
  }
  entries_[last_hash_ & (entries_.size() - 1)] = {
      last_hash_, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(ids_.size()),
      static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
  words_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

}  // namespace anyslot

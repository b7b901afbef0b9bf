#include "kv/keys.h"

#include "base/block.h"

namespace anyslot {

namespace {

// The first field of every digest says what it is a key of, so that keys of different sorts never
// meet.
constexpr std::string_view kOwner = "anyslot owner v1";
constexpr std::string_view kDocument = "anyslot document v1";
constexpr std::string_view kTextRoot = "anyslot text root v1";
constexpr std::string_view kSegment = "anyslot segment v1";
constexpr std::string_view kTextBlock = "anyslot text block v1";

void add_tokens(DigestBuilder& builder, std::span<const int32_t> token_ids) {
  builder.add(static_cast<int64_t>(token_ids.size())).add(token_ids);
}

}  // namespace

Digest owner_of(std::string_view salt) { return DigestBuilder().add(kOwner).add(salt).finish(); }

Digest document_key(const KeyDomain& domain, std::string_view encoding, std::string_view salt,
                    std::span<const int32_t> token_ids) {
  DigestBuilder builder;
  builder.add(kDocument).add(domain.model).add(domain.adapter).add(encoding).add(salt);
  add_tokens(builder, token_ids);
  return builder.finish();
}

Digest text_chain_root(const KeyDomain& domain, std::string_view encoding, std::string_view salt) {
  return DigestBuilder()
      .add(kTextRoot)
      .add(domain.model)
      .add(domain.adapter)
      .add(encoding)
      .add(salt)
      .finish();
}

Digest extend_with_segment(const Digest& chain, std::string_view kind, const Digest& segment) {
  return DigestBuilder().add(kSegment).add(chain).add(kind).add(segment).finish();
}

Digest block_key(const Digest& chain, std::span<const int32_t> token_ids) {
  DigestBuilder builder;
  builder.add(kTextBlock).add(chain);
  add_tokens(builder, token_ids);
  return builder.finish();
}

std::vector<Digest> block_keys(const Digest& chain, std::span<const int32_t> token_ids) {
  std::vector<Digest> keys;
  keys.reserve(token_ids.size() / kBlockSize);
  for (; token_ids.size() >= kBlockSize; token_ids = token_ids.subspan(kBlockSize)) {
    keys.push_back(block_key(keys.empty() ? chain : keys.back(), token_ids.first(kBlockSize)));
  }
  return keys;
}

}  // namespace anyslot

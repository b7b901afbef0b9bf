#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace anyslot {

/// What every key of one engine shares.
struct KeyDomain {
  Digest model;         // weights, compute and KV dtype, RoPE settings
  std::string adapter;  // empty: none
};

/// Stands for a salt wherever entries remember whose they are.
Digest owner_of(std::string_view salt);

/// Key of a document encoded alone. `encoding` names how ("turned", "raw"): entries of different
/// encodings never meet. Covers domain, encoding, salt, token count and token ids.
Digest document_key(const KeyDomain& domain, std::string_view encoding, std::string_view salt,
                    std::span<const int32_t> token_ids);

/// Start of the chain of text blocks of one request; see extend_with_segment and block_key.
Digest text_chain_root(const KeyDomain& domain, std::string_view encoding, std::string_view salt);

/// The chain after a predecessor: a document (its document_key) or a whole text segment.
/// `kind` names it ("document", "text").
Digest extend_with_segment(const Digest& chain, std::string_view kind, const Digest& segment);

/// Key of a full block of text that follows `chain`; it is also the chain for the next block.
Digest block_key(const Digest& chain, std::span<const int32_t> token_ids);

/// Keys of all full blocks of `token_ids`, in order.
std::vector<Digest> block_keys(const Digest& chain, std::span<const int32_t> token_ids);

}  // namespace anyslot

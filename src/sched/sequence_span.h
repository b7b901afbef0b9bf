#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/block.h"
#include "base/hash.h"
#include "kv/kv_cache.h"
#include "plan/step_plan.h"

namespace anyslot {

enum class SpanRole : uint8_t {
  kText,            // private blocks and indexed text blocks
  kSharedDocument,  // the cache's blocks as they are
  kCopiedDocument,  // private blocks, copied from the cache's and re-turned
};

/// One span of a sequence: what was expanded from its segments, and what it holds while admitted.
struct SequenceSpan {
  SpanRole role = SpanRole::kText;
  int64_t begin = 0;  // prompt position of the first token
  int64_t end = 0;    // one past the last; the last span grows with the answer
  KeyForm key_form = KeyForm::kTurned;
  bool recompute_first_block = false;  // shared documents only
  bool indexed = false;                // text only: full blocks are looked up and entered
  Digest key;                          // of the document; or the chain that a text span starts from
  /// Indexed text: the keys of its full blocks within the prompt, which all choices share; and of
  /// those that the answer has filled.
  std::shared_ptr<const std::vector<Digest>> prompt_keys;
  std::vector<Digest> answer_keys;

  CacheEntry* entry = nullptr;  // documents; a copied one lets go of it once copied
  std::vector<BlockId>
      blocks;  // text: all of it; a document: its copy, or its recomputed first block
  std::vector<CacheEntry*>
      text_entries;  // owners of the first blocks of a text span; the other blocks are private
  int64_t num_computed = 0;   // tokens whose KV this sequence wrote or found (text, first block)
  int64_t num_scheduled = 0;  // tokens that the step in flight writes
  bool copied = false;
  bool copy_scheduled = false;

  int64_t num_tokens() const { return end - begin; }
  size_t num_prompt_keys() const { return prompt_keys == nullptr ? 0 : prompt_keys->size(); }
  size_t num_block_keys() const { return num_prompt_keys() + answer_keys.size(); }
  const Digest& block_key(size_t block) const {
    const size_t in_prompt = num_prompt_keys();
    return block < in_prompt ? (*prompt_keys)[block] : answer_keys[block - in_prompt];
  }
  bool is_document() const { return role != SpanRole::kText; }
  /// Tokens that the sequence itself computes.
  int64_t num_own_tokens() const {
    if (!is_document()) return num_tokens();
    return recompute_first_block ? std::min<int64_t>(num_tokens(), kBlockSize) : 0;
  }
  int64_t num_known() const { return num_computed + num_scheduled; }
  /// The KV of all its tokens stands in the pool.
  bool is_complete() const {
    if (role == SpanRole::kCopiedDocument) return copied;
    if (is_document() && (entry == nullptr || entry->state != EntryState::kReady)) return false;
    return num_computed == num_own_tokens();
  }
};

}  // namespace anyslot

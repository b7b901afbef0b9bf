#include "sched/admission.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_set>
#include <utility>

namespace anyslot {

namespace {

std::span<const int32_t> document_tokens(const Sequence& sequence, const SequenceSpan& span) {
  return sequence.prompt().subspan(static_cast<size_t>(span.begin),
                                   static_cast<size_t>(span.num_tokens()));
}

// Cached blocks at the head of a text span. The last token of a sequence is always computed, and so
// are tokens whose logits are wanted.
std::vector<CacheEntry*> find_cached_text(const Sequence& sequence, const SequenceSpan& span,
                                          KvCache& cache) {
  int64_t reusable = span.num_tokens() - (&span == &sequence.last_span() ? 1 : 0);
  if (sequence.wants_prompt_logits()) {
    for (const TokenRange& range : sequence.given->text_ranges) {
      if (range.end > span.begin)
        reusable = std::min(reusable, std::max<int64_t>(0, range.begin - span.begin));
    }
  }
  const auto blocks = static_cast<size_t>(reusable / kBlockSize);
  std::span<const Digest> prompt_keys;
  if (span.prompt_keys != nullptr) prompt_keys = *span.prompt_keys;
  const size_t in_prompt = std::min(blocks, prompt_keys.size());
  std::vector<CacheEntry*> found = cache.find_text_run(prompt_keys.first(in_prompt));
  if (found.size() < in_prompt) return found;
  const std::span<const Digest> answer_keys(span.answer_keys);
  for (CacheEntry* const entry :
       cache.find_text_run(answer_keys.first(std::min(blocks - in_prompt, answer_keys.size())))) {
    found.push_back(entry);
  }
  return found;
}

int64_t num_private_blocks(const SequenceSpan& span) {
  switch (span.role) {
    case SpanRole::kText:
    case SpanRole::kCopiedDocument:
      return blocks_for(span.num_tokens());
    case SpanRole::kSharedDocument:
      return span.recompute_first_block ? 1 : 0;
  }
  return 0;
}

// The admission tried on counts alone: blocks taken from cache.available_blocks().
int64_t count_needed_blocks(const Sequence& sequence, KvCache& cache) {
  int64_t needed = 0;
  std::unordered_set<Digest, DigestHash> seen;
  for (const SequenceSpan& span : sequence.spans) {
    needed += num_private_blocks(span);
    if (span.is_document()) {
      if (!seen.insert(span.key).second) continue;
      const CacheEntry* entry = cache.find(span.key);
      needed += entry != nullptr ? cache.evictable_blocks(*entry) : blocks_for(span.num_tokens());
      continue;
    }
    for (const CacheEntry* entry : find_cached_text(sequence, span, cache)) {
      needed += cache.evictable_blocks(*entry) - 1;  // it takes the place of a private block
    }
  }
  return needed;
}

// Takes the memory that the sequence needs while it runs: steps then take none, and what follows
// here cannot fail half-way. Not before, since many may wait.
void reserve_memory(Sequence& sequence) {
  const int64_t max_answer = sequence.has_answer() ? sequence.sampling().max_tokens : 0;
  const int64_t more_tokens = max_answer - sequence.num_generated();
  sequence.answer.reserve(static_cast<size_t>(max_answer));
  for (SequenceSpan& span : sequence.spans) {
    const bool grows = &span == &sequence.last_span();
    const auto blocks =
        static_cast<size_t>(blocks_for(span.num_tokens() + (grows ? more_tokens : 0)));
    if (span.role != SpanRole::kSharedDocument) span.blocks.reserve(blocks);
    if (span.recompute_first_block) span.blocks.reserve(1);
    if (!span.indexed) continue;
    span.text_entries.reserve(blocks);
    span.answer_keys.reserve(blocks - span.num_prompt_keys());
  }
}

// Takes what is cached already, before any allocation could evict it.
void acquire_cached(Sequence& sequence, KvCache& cache) {
  const bool counts = !sequence.usage_known;
  std::unordered_set<Digest, DigestHash> seen;
  for (SequenceSpan& span : sequence.spans) {
    if (span.is_document()) {
      CacheEntry* const entry = cache.find(span.key);
      if (entry == nullptr) continue;
      const bool is_first = seen.insert(span.key).second;
      span.entry = entry;
      cache.acquire(*entry, counts && is_first);
      continue;
    }
    const std::vector<CacheEntry*> found = find_cached_text(sequence, span, cache);
    span.text_entries.assign(found.begin(), found.end());  // into the memory reserved for them
    for (CacheEntry* entry : span.text_entries) {
      cache.acquire(*entry, counts);
      span.blocks.push_back(entry->blocks.front());
    }
    span.num_computed = static_cast<int64_t>(span.text_entries.size()) * kBlockSize;
  }
}

// Makes entries, and jobs to fill them, for the documents that were not found.
void insert_missing(Sequence& sequence, KvCache& cache, EncodeJobs& jobs) {
  for (SequenceSpan& span : sequence.spans) {
    if (!span.is_document() || span.entry != nullptr) continue;
    span.entry = cache.find(span.key);  // the same document stood earlier in this sequence
    if (span.entry != nullptr) {
      cache.acquire(*span.entry, /*counts=*/false);
      continue;
    }
    span.entry = cache.insert_encoding(span.key, span.num_tokens(), sequence.given->owner,
                                       sequence.given->tenant);
    if (span.entry == nullptr)
      throw std::logic_error("admission counted too few blocks for a document");
    const std::span<const int32_t> tokens = document_tokens(sequence, span);
    jobs.emplace(span.entry, EncodeJob{{tokens.begin(), tokens.end()}, span.key_form, 0, 0});
  }
}

void allocate_private(Sequence& sequence, KvCache& cache) {
  for (SequenceSpan& span : sequence.spans) {
    const int64_t missing = num_private_blocks(span) - static_cast<int64_t>(span.blocks.size());
    if (missing == 0) continue;
    const auto blocks = cache.allocate_private(missing);
    if (!blocks) throw std::logic_error("admission counted too few private blocks");
    span.blocks.insert(span.blocks.end(), blocks->begin(), blocks->end());
  }
}

// Documents encoded alone, before insert_missing: ready ones are cached, others joined, the rest
// computed.
void report_shared_documents(Sequence& sequence) {
  std::unordered_set<Digest, DigestHash> missing;
  size_t document = 0;
  for (const SequenceSpan& span : sequence.spans) {
    if (!span.is_document()) {
      sequence.usage.cached_tokens += span.num_computed;
      continue;
    }
    const bool ready = span.entry != nullptr && span.entry->state == EntryState::kReady;
    const bool joined = !ready && (span.entry != nullptr || !missing.insert(span.key).second);
    const int64_t own = span.num_own_tokens();
    const int64_t cached = ready ? span.num_tokens() - own : 0;
    sequence.usage.cached_tokens += cached;
    if (document >= sequence.given->documents.size() ||
        sequence.given->documents[document].begin != span.begin)
      continue;
    DocumentUsage& usage = sequence.usage.documents[document++];
    usage.cached_tokens = cached;
    usage.source = ready    ? DocumentSource::kPool
                   : joined ? DocumentSource::kJoined
                            : DocumentSource::kComputed;
  }
}

// Documents in place: what the cached head of the one text span covers.
void report_documents_in_place(Sequence& sequence) {
  const int64_t cached = sequence.spans.front().num_computed;
  sequence.usage.cached_tokens = cached;
  for (size_t i = 0; i < sequence.given->documents.size(); ++i) {
    const GivenDocument& range = sequence.given->documents[i];
    DocumentUsage& usage = sequence.usage.documents[i];
    usage.cached_tokens = std::clamp<int64_t>(cached - range.begin, 0, usage.tokens);
    usage.source =
        usage.cached_tokens == usage.tokens ? DocumentSource::kPool : DocumentSource::kComputed;
  }
}

void report_usage(Sequence& sequence) {
  sequence.usage.prompt_tokens = sequence.given->num_prompt_tokens();
  for (size_t i = 0; i < sequence.given->documents.size(); ++i) {
    const GivenDocument& range = sequence.given->documents[i];
    sequence.usage.documents.push_back(
        {static_cast<int>(i), range.id, range.end - range.begin, 0, DocumentSource::kComputed});
  }
  if (sequence.spans.front().is_document()) {
    report_shared_documents(sequence);
  } else {
    report_documents_in_place(sequence);
  }
}

/// Calls `visit` with each span that is one of the given documents, and the index of that.
template <typename Visit>
void for_given_documents(Sequence& sequence, const Visit& visit) {
  const std::vector<GivenDocument>& documents = sequence.given->documents;
  size_t next = 0;
  for (SequenceSpan& span : sequence.spans) {
    if (next == documents.size()) return;
    if (span.is_document() && span.begin == documents[next].begin) visit(span, next++);
  }
}

bool must_pin(const Sequence& sequence, size_t document) {
  return sequence.choice == 0 && sequence.given->documents[document].pin &&
         !sequence.pins_made[document];
}

// A document counts for the tenant that it was first encoded for, who may be another one.
Status check_pins(Sequence& sequence, KvCache& cache) {
  std::map<Tenant, int64_t> more_blocks;
  std::unordered_set<Digest, DigestHash> seen;
  for_given_documents(sequence, [&](const SequenceSpan& span, size_t document) {
    if (!must_pin(sequence, document) || !seen.insert(span.key).second) return;
    const CacheEntry* entry = cache.find(span.key);
    if (entry != nullptr && entry->is_pinned()) return;
    more_blocks[entry == nullptr ? sequence.given->tenant : entry->document.tenant] +=
        blocks_for(span.num_tokens());
  });
  int64_t checked = 0;
  for (const auto& [tenant, blocks] : more_blocks) {
    if (Status status = cache.check_pins(blocks, tenant, checked); !status.ok()) return status;
    checked += blocks;
  }
  return {};
}

void tell_wishes(Sequence& sequence, KvCache& cache) {
  for_given_documents(sequence, [&](SequenceSpan& span, size_t index) {
    const GivenDocument& document = sequence.given->documents[index];
    cache.list_document(*span.entry, document.id);
    if (document.time_to_live) cache.set_time_to_live(*span.entry, *document.time_to_live);
    if (!must_pin(sequence, index)) return;
    sequence.pins_made[index] = true;
    if (span.entry->pins > 0) return;
    if (!cache.pin(*span.entry).ok()) throw std::logic_error("admission counted too few pins");
  });
  // After the pins, which have been counted on.
  for_given_documents(sequence, [&](SequenceSpan& span, size_t index) {
    const int64_t ticks = sequence.given->documents[index].hold;
    if (ticks > 0 && sequence.choice == 0) cache.hold(*span.entry, ticks);
  });
}

// The pin of an entry that is not ready goes when that is dropped. Choice 0 pins for all choices.
void recall_pins(Sequence& sequence) {
  if (sequence.choice > 0) return;
  for_given_documents(sequence, [&sequence](const SequenceSpan& span, size_t document) {
    if (span.entry != nullptr && span.entry->state == EntryState::kEncoding)
      sequence.pins_made[document] = false;
  });
}

}  // namespace

Expected<bool> admit(Sequence& sequence, KvCache& cache, EncodeJobs& jobs) {
  if (sequence.spans.empty()) sequence.spans = sequence.given->spans;
  if (Status status = check_pins(sequence, cache); !status.ok()) return status;
  if (missing_blocks(sequence, cache) > 0) return false;
  reserve_memory(sequence);
  acquire_cached(sequence, cache);
  if (!sequence.usage_known) report_usage(sequence);
  sequence.usage_known = true;
  insert_missing(sequence, cache, jobs);
  allocate_private(sequence, cache);
  tell_wishes(sequence, cache);
  return true;
}

int64_t missing_blocks(const Sequence& sequence, KvCache& cache) {
  return count_needed_blocks(sequence, cache) - cache.available_blocks();
}

namespace {

/// Blocks that a request takes at its full length, but for documents that are pinned already.
int64_t blocks_beside_pins(const GivenRequest& request, KvCache& cache) {
  int64_t needed = max_blocks(request, request.sampling.max_tokens);
  std::unordered_set<Digest, DigestHash> seen;
  for (const SequenceSpan& span : request.spans) {
    if (!span.is_document() || !seen.insert(span.key).second) continue;
    const CacheEntry* entry = cache.find(span.key);
    if (entry != nullptr && entry->is_pinned()) needed -= blocks_for(span.num_tokens());
  }
  return needed;
}

int64_t blocks_left_by_pins(const KvCache& cache) {
  const KvCacheStats stats = cache.stats();
  return stats.total_blocks - stats.pinned_blocks;
}

}  // namespace

Status check_fits_beside_pins(const Sequence& sequence, KvCache& cache) {
  const int64_t needed = blocks_beside_pins(*sequence.given, cache);
  const int64_t given = blocks_left_by_pins(cache);
  if (needed <= given) return {};
  const std::string need = "the request needs " + std::to_string(needed) + " KV blocks, ";
  const std::string cure = "; unpin some, raise --kv-cache or shorten the request";
  const std::string total = " of " + std::to_string(cache.stats().total_blocks);
  if (sequence.given->tenant) {  // what others have pinned is not told
    return resource_exhausted(need + "which pinned documents do not leave now; " +
                              std::to_string(cache.pinned_blocks(sequence.given->tenant)) + total +
                              " are pinned by you" + cure);
  }
  return resource_exhausted(need + "but pinned documents leave " + std::to_string(given) + total +
                            cure);
}

void fit_beside_pins(GivenRequest& request, KvCache& cache) {
  cut_answer(request, blocks_beside_pins(request, cache) - blocks_left_by_pins(cache));
}

void release_entry(CacheEntry*& entry, KvCache& cache, EncodeJobs& jobs) {
  if (entry == nullptr) return;
  CacheEntry* const key = entry;
  entry = nullptr;
  if (cache.release(*key)) jobs.erase(key);
}

void release(Sequence& sequence, KvCache& cache, EncodeJobs& jobs) {
  recall_pins(sequence);
  for (SequenceSpan& span : sequence.spans) {
    release_entry(span.entry, cache, jobs);
    cache.free_private(std::span(span.blocks).subspan(span.text_entries.size()));
    // Later blocks of a chain leave first, so that none is left without its predecessors.
    for (auto entry = span.text_entries.rbegin(); entry != span.text_entries.rend(); ++entry) {
      cache.release(**entry);
    }
    span.blocks.clear();
    span.text_entries.clear();
    span.num_computed = 0;
    span.num_scheduled = 0;
    span.copied = false;
    span.copy_scheduled = false;
  }
}

}  // namespace anyslot

#include "sched/scheduler.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "sched/admission.h"

namespace anyslot {

namespace {

bool needs(const Sequence& answer, const CacheEntry& entry) {
  return std::ranges::any_of(answer.spans, [&entry](const SequenceSpan& span) {
    return span.is_document() && span.key == entry.digest;
  });
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, KvCache& cache)
    : cache_(cache),
      builder_(config.max_batch_tokens, config.ignore_placement_angles, config.layer_windows) {
  answers_.num_slots = config.max_running_requests;
  ahead_.num_slots = document_slots(config.max_running_requests);
}

void Scheduler::submit(std::unique_ptr<Sequence> sequence) {
  SequenceList& waiting = lane_of(*sequence).waiting;
  waiting.push_back(std::move(sequence));
}

// A further choice finds the prompt's KV in the cache once choice 0 has computed it. Choice 0 does
// not wait itself: it would stand before this one, and nothing overtakes what could not be
// admitted.
bool Scheduler::waits_for_prompt(const Sequence& sequence) const {
  return sequence.choice > 0 &&
         std::ranges::any_of(answers_.running, [&sequence](const auto& other) {
           return other->id == sequence.request_id && other->num_generated() == 0;
         });
}

// What does not fit although nothing runs will not fit later either, unless documents are unpinned.
Expected<bool> Scheduler::try_admission(Sequence& sequence) {
  Expected<bool> admitted = admit(sequence, cache_, jobs_);
  if (!admitted.ok() || *admitted) return admitted;
  if (sequence.has_answer() && make_room_for(sequence)) return admit(sequence, cache_, jobs_);
  if (num_running() > 0) return false;
  if (Status status = check_fits_beside_pins(sequence, cache_); !status.ok()) return status;
  return false;
}

// Choices of one request stand side by side.
void Scheduler::refuse(Lane& lane, SequenceList::iterator first, Status status) {
  const uint64_t request_id = (*first)->request_id;
  ended_.reserve(ended_.size() + 1);
  ended_.push_back({std::move(*first), std::move(status), {}});
  auto next = lane.waiting.erase(first);
  while (next != lane.waiting.end() && (*next)->request_id == request_id)
    next = lane.waiting.erase(next);
}

// A document must not take the room that an answer waits for.
void Scheduler::admit_waiting() {
  if (admit_from(answers_)) admit_from(ahead_);
}

// False when the blocks do not suffice for the first that could come next.
bool Scheduler::admit_from(Lane& lane) {
  for (auto next = lane.waiting.begin(); next != lane.waiting.end() && lane.has_free_slot();) {
    const auto candidate = next++;
    if (waits_for_prompt(**candidate)) continue;
    const bool is_new = !(*candidate)->usage_known;
    const Expected<bool> admitted = try_admission(**candidate);
    if (!admitted.ok()) {
      while (next != lane.waiting.end() && (*next)->request_id == (*candidate)->request_id) ++next;
      refuse(lane, candidate, admitted.status());
      continue;
    }
    if (!*admitted) return false;
    if (is_new) newly_admitted_.push_back(candidate->get());
    const uint64_t id = (*candidate)->id;
    const auto place = std::ranges::find_if(
        lane.running, [id](const auto& sequence) { return sequence->id > id; });
    lane.running.splice(place, lane.waiting, candidate);
  }
  return true;
}

void Scheduler::preempt(Lane& lane, SequenceList::iterator victim) {
  release(**victim, cache_, jobs_);
  const uint64_t id = (*victim)->id;
  const auto place =
      std::ranges::find_if(lane.waiting, [id](const auto& sequence) { return sequence->id > id; });
  lane.waiting.splice(place, lane.running, victim);
  ++preemptions_total_;
}

// Whether nobody waits for an answer with this document: then its blocks are free when those who
// have it encoded ahead let go of it.
bool Scheduler::is_held_ahead_only(const CacheEntry& entry) const {
  return entry.waiters == std::ranges::count_if(ahead_.running, [&entry](const auto& document) {
           return document->last_span().entry == &entry;
         });
}

// The newest whose blocks would be free, and are none that `answer` (null: nobody in particular)
// needs itself; the end of the list when there is none.
Scheduler::SequenceList::iterator Scheduler::document_to_preempt(const Sequence* answer) {
  for (auto next = ahead_.running.end(); next != ahead_.running.begin();) {
    const CacheEntry& entry = *(*--next)->last_span().entry;
    if (is_held_ahead_only(entry) && (answer == nullptr || !needs(*answer, entry))) return next;
  }
  return ahead_.running.end();
}

// Preempts documents that are encoded ahead, the newest first, as far as that lets the answer in;
// none when it would not.
bool Scheduler::make_room_for(const Sequence& answer) {
  std::unordered_set<const CacheEntry*> entries;
  int64_t gain = 0;
  for (const auto& document : ahead_.running) {
    const CacheEntry& entry = *document->last_span().entry;
    if (!is_held_ahead_only(entry) || needs(answer, entry)) continue;
    if (entries.insert(&entry).second) gain += std::ssize(entry.blocks);
  }
  if (gain == 0 || missing_blocks(answer, cache_) > gain) return false;
  while (missing_blocks(answer, cache_) > 0) preempt(ahead_, document_to_preempt(&answer));
  return true;
}

// Makes room for the KV of the newest token; false when the sequence itself was the newest and had
// to go. Documents that are encoded ahead go first.
bool Scheduler::grow(Sequence& sequence) {
  SequenceSpan& span = sequence.last_span();
  while (static_cast<int64_t>(span.blocks.size()) < blocks_for(span.num_tokens())) {
    if (const auto block = cache_.allocate_private_block()) {
      span.blocks.push_back(*block);
      continue;
    }
    if (const auto document = document_to_preempt(nullptr); document != ahead_.running.end()) {
      preempt(ahead_, document);
      continue;
    }
    const auto newest = std::prev(answers_.running.end());
    const bool itself = newest->get() == &sequence;
    preempt(answers_, newest);
    if (itself) return false;
  }
  return true;
}

void Scheduler::grow_decoding() {
  for (auto it = answers_.running.begin(); it != answers_.running.end();) {
    Sequence& sequence = **it;
    if (sequence.is_decoding() && !grow(sequence)) return;  // it was the last of the list
    ++it;
  }
}

bool Scheduler::plan_step(StepPlan& plan) {
  grow_decoding();
  newly_admitted_.clear();
  do {
    admit_waiting();
  } while (end_ready_documents());  // which makes room
  builder_.begin(plan);
  for (const auto& sequence : answers_.running) {
    if (sequence->is_decoding() && builder_.budget() > 0) builder_.add_decode(*sequence);
  }
  // What is encoded ahead of its use gives way to those who wait for an answer.
  for (const Lane* lane : {&answers_, &ahead_}) {
    for (const auto& sequence : lane->running) {
      if (!sequence->is_decoding() && builder_.budget() > 0) builder_.add_prefill(*sequence, jobs_);
    }
  }
  builder_.finish();
  if (plan.rows.empty() && num_running() + num_waiting() > 0) {
    throw std::logic_error("the scheduler has requests but found nothing to run");
  }
  return !plan.rows.empty();
}

void Scheduler::commit_jobs() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    auto& [entry, job] = *it;
    job.num_computed += std::exchange(job.num_scheduled, 0);
    if (job.finishes_in_step()) {
      cache_.mark_ready(*entry);
      it = jobs_.erase(it);
    } else {
      ++it;
    }
  }
}

// Enters full blocks of text into the cache, as far as no other request has entered the same.
void Scheduler::index_text(SequenceSpan& span, const Sequence& sequence) {
  while (span.indexed) {
    const size_t block = span.text_entries.size();
    if (static_cast<int64_t>(block + 1) * kBlockSize > span.num_computed) return;
    if (block == span.num_block_keys()) {
      const Digest& chain = block == 0 ? span.key : span.block_key(block - 1);
      std::array<int32_t, kBlockSize> tokens{};
      const int64_t begin = span.begin + static_cast<int64_t>(block) * kBlockSize;
      for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = sequence.token(begin + static_cast<int64_t>(i));
      }
      span.answer_keys.push_back(block_key(chain, tokens));
    }
    CacheEntry* entry = cache_.adopt_text_block(span.block_key(block), span.blocks[block]);
    if (entry == nullptr) return;
    span.text_entries.push_back(entry);
  }
}

void Scheduler::commit_sequence(Sequence& sequence) {
  for (SequenceSpan& span : sequence.spans) {
    span.num_computed += std::exchange(span.num_scheduled, 0);
    if (std::exchange(span.copy_scheduled, false)) {
      span.copied = true;
      release_entry(span.entry, cache_, jobs_);
    }
    if (!span.is_document()) index_text(span, sequence);
  }
}

void Scheduler::commit_step() {
  commit_jobs();
  for (const auto& sequence : answers_.running) commit_sequence(*sequence);
  end_ready_documents();
}

// Whether there were any.
bool Scheduler::end_ready_documents() {
  const size_t num_ended = ended_.size();
  for (auto next = ahead_.running.begin(); next != ahead_.running.end();) {
    const auto candidate = next++;
    if (!(*candidate)->last_span().is_complete()) continue;
    DocumentInfo document = cache_.describe(*(*candidate)->last_span().entry);
    ended_.reserve(ended_.size() + 1);
    release(**candidate, cache_, jobs_);
    ended_.push_back({std::move(*candidate), {}, std::move(document)});
    ahead_.running.erase(candidate);
  }
  return ended_.size() > num_ended;
}

void Scheduler::append_token(Sequence& sequence, int32_t token_id) {
  sequence.answer.push_back(token_id);
  ++sequence.last_span().end;
}

std::unique_ptr<Sequence> Scheduler::remove(uint64_t id) {
  for (SequenceList* list :
       {&answers_.running, &answers_.waiting, &ahead_.running, &ahead_.waiting}) {
    const auto it =
        std::ranges::find_if(*list, [id](const auto& sequence) { return sequence->id == id; });
    if (it == list->end()) continue;
    std::unique_ptr<Sequence> sequence = std::move(*it);
    list->erase(it);
    release(*sequence, cache_, jobs_);
    return sequence;
  }
  return nullptr;
}

Status Scheduler::check_integrity() const {
  std::vector<BlockId> private_blocks;
  KvCache::EntryUses uses;
  for (const Lane* lane : {&answers_, &ahead_}) {
    for (const auto& sequence : lane->running) {
      for (const SequenceSpan& span : sequence->spans) {
        const auto num_shared = static_cast<std::ptrdiff_t>(span.text_entries.size());
        private_blocks.insert(private_blocks.end(), span.blocks.begin() + num_shared,
                              span.blocks.end());
        for (const CacheEntry* entry : span.text_entries) ++uses[entry];
        if (span.entry != nullptr) ++uses[span.entry];
      }
    }
  }
  std::unordered_set<const CacheEntry*> encoding;
  for (const auto& [entry, job] : jobs_) encoding.insert(entry);
  if (Status status = cache_.check_uses(uses, encoding); !status.ok()) return status;
  return cache_.check_integrity(private_blocks);
}

}  // namespace anyslot

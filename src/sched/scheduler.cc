#include "sched/scheduler.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "sched/admission.h"

namespace anyslot {

Scheduler::Scheduler(const SchedulerConfig& config, KvCache& cache)
    : config_(config),
      cache_(cache),
      builder_(config.max_batch_tokens, config.ignore_placement_angles) {}

void Scheduler::submit(std::unique_ptr<Sequence> sequence) {
  waiting_.push_back(std::move(sequence));
}

// A further choice finds the prompt's KV in the cache once choice 0 has computed it. Choice 0 does
// not wait itself: it would stand before this one, and nothing overtakes what could not be
// admitted.
bool Scheduler::waits_for_prompt(const Sequence& sequence) const {
  return sequence.choice > 0 &&
         std::any_of(running_.begin(), running_.end(), [&sequence](const auto& other) {
           return other->id == sequence.request_id && other->num_generated() == 0;
         });
}

// What does not fit although nothing runs will not fit later either, unless documents are unpinned.
Expected<bool> Scheduler::try_admission(Sequence& sequence) {
  Expected<bool> admitted = admit(sequence, cache_, jobs_);
  if (!admitted.ok() || *admitted || !running_.empty()) return admitted;
  if (Status status = check_fits_beside_pins(sequence, cache_); !status.ok()) return status;
  return false;
}

// Choices of one request stand side by side.
void Scheduler::refuse(SequenceList::iterator first, Status status) {
  const uint64_t request_id = (*first)->request_id;
  ended_.push_back({std::move(*first), std::move(status), {}});
  auto next = waiting_.erase(first);
  while (next != waiting_.end() && (*next)->request_id == request_id) next = waiting_.erase(next);
}

void Scheduler::admit_waiting() {
  for (auto next = waiting_.begin();
       next != waiting_.end() && num_running() < config_.max_running_requests;) {
    const auto candidate = next++;
    if (waits_for_prompt(**candidate)) continue;
    const bool is_new = !(*candidate)->usage_known;
    const Expected<bool> admitted = try_admission(**candidate);
    if (!admitted.ok()) {
      while (next != waiting_.end() && (*next)->request_id == (*candidate)->request_id) ++next;
      refuse(candidate, admitted.status());
      continue;
    }
    if (!*admitted) return;
    if (is_new) newly_admitted_.push_back(candidate->get());
    const uint64_t id = (*candidate)->id;
    const auto place = std::find_if(running_.begin(), running_.end(),
                                    [id](const auto& sequence) { return sequence->id > id; });
    running_.splice(place, waiting_, candidate);
  }
}

void Scheduler::preempt(SequenceList::iterator victim) {
  release(**victim, cache_, jobs_);
  const uint64_t id = (*victim)->id;
  const auto place = std::find_if(waiting_.begin(), waiting_.end(),
                                  [id](const auto& sequence) { return sequence->id > id; });
  waiting_.splice(place, running_, victim);
  ++preemptions_total_;
}

// Makes room for the KV of the newest token; false when the sequence itself was the newest and had
// to go.
bool Scheduler::grow(Sequence& sequence) {
  SequenceSpan& span = sequence.last_span();
  while (static_cast<int64_t>(span.blocks.size()) < blocks_for(span.num_tokens())) {
    if (const auto block = cache_.allocate_private_block()) {
      span.blocks.push_back(*block);
      continue;
    }
    const auto newest = std::prev(running_.end());
    const bool itself = newest->get() == &sequence;
    preempt(newest);
    if (itself) return false;
  }
  return true;
}

void Scheduler::grow_decoding() {
  for (auto it = running_.begin(); it != running_.end();) {
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
  for (const auto& sequence : running_) {
    if (sequence->is_decoding() && builder_.budget() > 0) builder_.add_decode(*sequence);
  }
  // What is encoded ahead of its use gives way to those who wait for an answer.
  for (const bool has_answer : {true, false}) {
    for (const auto& sequence : running_) {
      if (sequence->has_answer() != has_answer || sequence->is_decoding()) continue;
      if (builder_.budget() > 0) builder_.add_prefill(*sequence, jobs_);
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
  for (const auto& sequence : running_) commit_sequence(*sequence);
  end_ready_documents();
}

// Whether there were any.
bool Scheduler::end_ready_documents() {
  const size_t num_ended = ended_.size();
  for (auto next = running_.begin(); next != running_.end();) {
    const auto candidate = next++;
    if ((*candidate)->has_answer() || !(*candidate)->last_span().is_complete()) continue;
    const DocumentInfo document = cache_.describe(*(*candidate)->last_span().entry);
    release(**candidate, cache_, jobs_);
    ended_.push_back({std::move(*candidate), {}, document});
    running_.erase(candidate);
  }
  return ended_.size() > num_ended;
}

void Scheduler::append_token(Sequence& sequence, int32_t token_id) {
  sequence.answer.push_back(token_id);
  ++sequence.last_span().end;
}

std::unique_ptr<Sequence> Scheduler::remove(uint64_t id) {
  for (SequenceList* list : {&running_, &waiting_}) {
    const auto it = std::find_if(list->begin(), list->end(),
                                 [id](const auto& sequence) { return sequence->id == id; });
    if (it == list->end()) continue;
    std::unique_ptr<Sequence> sequence = std::move(*it);
    list->erase(it);
    release(*sequence, cache_, jobs_);
    return sequence;
  }
  return nullptr;
}

std::vector<std::unique_ptr<Sequence>> Scheduler::remove_all() {
  std::vector<std::unique_ptr<Sequence>> removed;
  for (SequenceList* list : {&running_, &waiting_}) {
    while (!list->empty()) removed.push_back(remove(list->front()->id));
  }
  return removed;
}

Status Scheduler::check_integrity() const {
  std::vector<BlockId> private_blocks;
  int64_t uses = 0;
  for (const auto& sequence : running_) {
    for (const SequenceSpan& span : sequence->spans) {
      private_blocks.insert(
          private_blocks.end(),
          span.blocks.begin() + static_cast<std::ptrdiff_t>(span.text_entries.size()),
          span.blocks.end());
      uses += static_cast<int64_t>(span.text_entries.size()) + (span.entry != nullptr ? 1 : 0);
    }
  }
  if (running_.empty() && !jobs_.empty()) {
    return internal_error(std::to_string(jobs_.size()) + " encode jobs are left without a request");
  }
  if (uses == 0 && cache_.stats().referenced_entries != 0) {
    return internal_error(std::to_string(cache_.stats().referenced_entries) +
                          " cache entries are referenced, but no request holds any");
  }
  return cache_.check_integrity(private_blocks);
}

}  // namespace anyslot

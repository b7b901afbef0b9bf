#pragma once

#include "kv/kv_cache.h"
#include "sched/encode_jobs.h"
#include "sched/sequence.h"

namespace anyslot {

/// Reserves everything that a sequence needs before its first step: all its documents (found,
/// joined or new), its text and its copies; or nothing, when the blocks do not suffice now (false).
/// On success sets the sequence's token usage if this is its first admission, adds a job for each
/// new document, and pins what is to be pinned. Fails with kResourceExhausted, and changes nothing,
/// when that cannot be pinned.
Expected<bool> admit(Sequence& sequence, KvCache& cache, EncodeJobs& jobs);

/// Blocks that admit() lacks, for a sequence whose admission was tried; 0 or less: they suffice.
int64_t missing_blocks(const Sequence& sequence, KvCache& cache);

/// Fails with kResourceExhausted when the sequence, at its full length, cannot be served as long as
/// the documents stay pinned that are now.
Status check_fits_beside_pins(const Sequence& sequence, KvCache& cache);

/// Cuts max_tokens of a request that nobody has begun with to what pinned documents leave room for,
/// and to 1 or min_tokens at least.
void fit_beside_pins(GivenRequest& request, KvCache& cache);

/// Gives back everything that the sequence holds; it may be admitted again and then starts over,
/// its generated tokens being part of its text.
void release(Sequence& sequence, KvCache& cache, EncodeJobs& jobs);

/// Lets go of one use of an entry; forgets the job of a document that nobody waits for any more.
void release_entry(CacheEntry*& entry, KvCache& cache, EncodeJobs& jobs);

}  // namespace anyslot

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "anyslot/status.h"
#include "base/block.h"
#include "base/hash.h"
#include "kv/block_pool.h"
#include "kv/document_index.h"
#include "kv/eviction.h"

namespace anyslot {

enum class EntryKind : uint8_t {
  kDocument,  // a document encoded alone, in as many blocks as it needs, the last one partly filled
  kTextBlock,  // one full block of text, found through its chain
};

enum class EntryState : uint8_t { kEncoding, kReady };

/// Owner (see owner_of) of pins that have a share; none: without one.
using Tenant = std::optional<Digest>;

/// What is known of a document beside its KV.
struct DocumentRecord {
  Digest owner;            // see owner_of
  Tenant tenant;           // whose pins they are
  std::string id;          // as a request named it last; empty: none did
  bool listed = false;     // a request or a user gave it as a document; else it is a preamble
  int64_t hits = 0;        // counted uses that found it ready
  int64_t born = 0;        // tick
  int64_t latest_use = 0;  // ascends with every use of any document
};

/// KV that requests share. Owned by KvCache, which alone changes it; its address is stable until it
/// is evicted or dropped.
struct CacheEntry {
  Digest digest;
  EntryKind kind = EntryKind::kDocument;
  EntryState state = EntryState::kEncoding;
  std::vector<BlockId> blocks;
  int64_t num_tokens = 0;
  int refs = 0;              // uses of a ready entry (a request that names it twice counts twice)
  int waiters = 0;           // uses that wait for an encoding entry
  int pins = 0;              // of an encoding entry they go with it when it is dropped
  int64_t hold_end = 0;      // the last tick at which it is held; 0: it is not
  int64_t time_to_live = 0;  // ticks from the end of its latest use, or pin; 0: without limit
  int64_t expiry = 0;        // while it is evictable: the last tick at which it serves; 0: none
  bool removed = false;      // never found again; it goes with its last use
  DocumentRecord document;   // of a document
  EvictionHandle eviction;   // where the eviction policy keeps it

  /// Spared from eviction though nobody uses it.
  bool is_pinned() const { return pins > 0 || hold_end > 0; }
};

/// A document of the cache, as its owner may see it.
struct DocumentInfo {
  Digest digest;
  std::string id;
  int64_t num_tokens = 0;
  int64_t num_blocks = 0;
  int64_t hits = 0;
  int64_t age = 0;  // ticks
  bool encoding = false;
  bool pinned = false;
  std::optional<int64_t> time_left;  // ticks until it expires, if nobody uses it
  int64_t latest_use = 0;            // see DocumentRecord
};

/// Counters; those named total never fall.
struct KvCacheStats {
  int64_t total_blocks = 0;
  int64_t free_blocks = 0;
  int64_t evictable_blocks = 0;  // in ready entries that nobody references or pins
  int64_t private_blocks = 0;
  int64_t pinned_blocks = 0;
  int64_t document_entries = 0;
  int64_t text_entries = 0;
  int64_t referenced_entries = 0;  // with refs or waiters
  int64_t evictions_total = 0;     // entries that went for room
  int64_t expirations_total = 0;   // entries whose time to live ended
};

/// The block pool and everything cached in it: documents and text blocks under one eviction policy.
/// Knows ids, hashes and counts; no sequence, no tensor. Not thread-safe: one thread owns it.
///
/// A block is free, private (owned by a caller, counted here), or in exactly one entry.
///
/// A call that breaks a precondition is a programming fault: it throws std::logic_error and changes
/// nothing.
class KvCache {
 public:
  explicit KvCache(int64_t num_blocks);
  ~KvCache();

  /// Looks up without touching order or counts; nullptr when absent.
  CacheEntry* find(const Digest& digest);

  /// Blocks that allocations may take: free ones and those of evictable entries.
  int64_t available_blocks() const;
  /// The blocks of `entry` if it is evictable now, else 0: what acquiring it takes from
  /// available_blocks().
  int64_t evictable_blocks(const CacheEntry& entry) const;

  /// A new entry in state kEncoding with one waiter, or nullptr when too few blocks are available
  /// (nothing is evicted then). The digest must be absent; num_tokens > 0.
  CacheEntry* insert_encoding(const Digest& digest, int64_t num_tokens, const Digest& owner = {},
                              const Tenant& tenant = {});
  /// One more use: a ref of a ready entry, a waiter of an encoding one. The eviction policy counts
  /// it if `counts`: a request that comes again after preemption, or names a document twice, is one
  /// use.
  void acquire(CacheEntry& entry, bool counts = true);
  /// Ends a use. An encoding entry is dropped with its last waiter, its blocks freed, and a removed
  /// one with its last use; a ready one becomes evictable with its last ref. The pointer is dead
  /// after a drop; returns true then. Text blocks of a chain are released from its end, so that the
  /// end is evicted first.
  bool release(CacheEntry& entry);
  /// Encoding is done: waiters become refs.
  void mark_ready(CacheEntry& entry);

  /// Spares an entry from eviction until unpin, which must follow as often. Fails as check_pins
  /// does.
  Status pin(CacheEntry& entry);
  void unpin(CacheEntry& entry);
  /// A pin that ends by itself, `ticks` > 0 from now or when an earlier hold does, if that is
  /// later. Does nothing and returns false where pins have no room for it.
  bool hold(CacheEntry& entry, int64_t ticks);
  void end_hold(CacheEntry& entry);
  /// Whether `more_blocks` that are not pinned could be, beside `others` that other tenants are to
  /// have pinned then; kResourceExhausted when more than half of the pool would be, or more than a
  /// quarter for one tenant. A tenant is told of its own pins only.
  Status check_pins(int64_t more_blocks, const Tenant& tenant = {}, int64_t others = 0) const;
  /// Blocks that a tenant has pinned; all pinned ones without a tenant.
  int64_t pinned_blocks(const Tenant& tenant) const;

  /// The time that times to live are measured in; it never goes back, and the unit is the caller's.
  /// Entries that have expired then are gone.
  void set_tick(int64_t tick);
  /// The last tick at which the next entry to expire serves, as long as nothing is used, or the
  /// next hold lasts; 0: none will end.
  int64_t next_expiry() const;
  /// `ticks` > 0, or 0 for no limit. An entry that is used or pinned does not expire; its time runs
  /// from the end of that.
  void set_time_to_live(CacheEntry& entry, int64_t ticks);

  /// Has the entry listed for its owner, under `id` unless that is empty.
  void list_document(CacheEntry& entry, std::string_view id);
  DocumentInfo describe(const CacheEntry& entry) const;
  /// The listed documents of one owner, the latest used first.
  std::vector<DocumentInfo> documents(const Digest& owner) const;
  /// Makes an entry unknown: the next request for it encodes it anew. Its blocks are free at once,
  /// or when those who use it now are done. It must not be pinned.
  void remove(CacheEntry& entry);

  /// `count` private blocks, evicting as needed; nullopt when too few are available (nothing is
  /// evicted then).
  std::optional<std::vector<BlockId>> allocate_private(int64_t count);
  /// The same for one block, without a list that would take memory in a step.
  std::optional<BlockId> allocate_private_block();
  void free_private(std::span<const BlockId> blocks);
  /// Turns a private block into a ready text entry with one ref; nullptr (nothing changed) when the
  /// digest is known already.
  CacheEntry* adopt_text_block(const Digest& digest, BlockId block);

  /// The longest run of ready text entries from the start of `keys` (see block_keys). Does not
  /// acquire.
  std::vector<CacheEntry*> find_text_run(std::span<const Digest> keys);

  KvCacheStats stats() const;

  /// Proves the counts; `private_blocks`: all blocks that callers own, in any order. Names the
  /// first contradiction; walks everything.
  Status check_integrity(std::span<const BlockId> private_blocks) const;
  /// How often callers use each entry.
  using EntryUses = std::unordered_map<const CacheEntry*, int64_t>;
  /// Proves that the entries are in use exactly as `uses` says, and that just those of `encoding`
  /// are being encoded.
  Status check_uses(const EntryUses& uses,
                    const std::unordered_set<const CacheEntry*>& encoding) const;

 private:
  friend struct KvCacheTestAccess;

  bool make_room(int64_t count);
  CacheEntry& add_entry(std::unique_ptr<CacheEntry> owned);
  void remove_entry(CacheEntry& entry);
  void count_pinned(const CacheEntry& entry, int64_t blocks);
  void end_holds();
  void make_evictable_if_unused(CacheEntry& entry);
  void keep(CacheEntry& entry);
  int64_t expiry_from_now(const CacheEntry& entry) const;
  Status check_entry(const CacheEntry& entry) const;
  Status check_blocks(std::span<const BlockId> private_blocks) const;
  Status check_counters() const;

  BlockPool pool_;
  EvictionPolicy policy_;
  std::unordered_map<Digest, std::unique_ptr<CacheEntry>, DigestHash> entries_;
  std::vector<bool> is_private_;  // [num_blocks]
  int64_t private_blocks_ = 0;
  int64_t pinned_blocks_ = 0;
  std::unordered_map<Digest, int64_t, DigestHash> pinned_by_tenant_;  // above 0
  DocumentIndex documents_;                                           // those of entries_
  int64_t referenced_entries_ = 0;
  int64_t evictions_total_ = 0;
  int64_t expirations_total_ = 0;
  int64_t next_hold_end_ = 0;  // at most that of any entry; 0: none is held
  int64_t num_uses_ = 0;       // of documents
  int64_t num_removed_ = 0;    // by remove()
};

}  // namespace anyslot

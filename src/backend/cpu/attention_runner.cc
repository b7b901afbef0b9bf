#include "backend/cpu/attention_runner.h"

#include <algorithm>
#include <utility>

namespace anyslot::cpu {

namespace {

/// Blocks that are listed at a time.
constexpr int kRunBlocks = 256;
/// Blocks of raw keys that are turned at a time: they should still be in the second-level cache
/// when they are scored.
constexpr int kRawRunBlocks = 16;

/// Hands out consecutive, aligned pieces of one memory; without memory it only counts.
class Carver {
 public:
  explicit Carver(std::byte* data) : data_(data) {}

  template <typename T>
  T* take(int64_t count) {
    std::byte* piece = data_ == nullptr ? nullptr : data_ + bytes_;
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_;
  size_t bytes_ = 0;
};

int64_t position_of_row(const AttentionCall& call, const WorkItem& item, int r) {
  return call.step.rows[call.plan.rows[item.row_begin + r]].position;
}

int64_t start_for_row(const AttentionCall& call, const Range& range, int r) {
  return range.starts < 0 ? call.step.placements[range.placement].start
                          : call.plan.starts[range.starts + r];
}

bool is_raw(const AttentionCall& call, const Range& range) {
  return call.step.placements[range.placement].span.key_form == KeyForm::kRaw;
}

int group_of(const AttentionSpec& spec) { return spec.num_heads / spec.num_kv_heads; }

}  // namespace

struct AttentionRunner::Worker {
  HostMemory memory;
  AttentionTile tile;
  float* cosine = nullptr;  // [num_pairs]: of the position at hand
  float* sine = nullptr;
  float* row_cosine = nullptr;  // [rows, num_pairs]: of the rows' own positions
  float* row_sine = nullptr;
  std::byte* turned_keys = nullptr;  // kRawRunBlocks blocks of raw keys, turned
  bool has_raw_query = false;        // tile.queries are turned by the rows' own positions
  std::vector<int64_t> begins;       // per row: tokens of the range at hand that it sees
  std::vector<int64_t> ends;
  std::vector<int32_t> run_begins;  // the same, from the first token of a run of blocks
  std::vector<int32_t> run_ends;
  const std::byte* keys[kRunBlocks + kTileBlocks];
  const std::byte* values[kRunBlocks + kTileBlocks];
  int num_blocks = 0;  // listed in keys and values, to be attended to
  int num_ahead = 0;   // listed behind them, to be prefetched
  std::vector<const float*> partials;

  /// Lays out memory for `rows` query rows.
  size_t lay_out(std::byte* data, const AttentionCall& call, int rows) {
    const int group = group_of(call.spec);
    const int head_dim = call.spec.head_dim;
    const int64_t heads = int64_t{rows} * group;
    Carver carver(data);
    tile.group = group;
    tile.head_dim = head_dim;
    tile.queries = carver.take<float>(heads * head_dim);
    tile.outputs = carver.take<float>(heads * head_dim);
    tile.maxima = carver.take<float>(heads);
    tile.sums = carver.take<float>(heads * kMaxLanes);
    tile.begins = carver.take<int32_t>(heads);
    tile.ends = carver.take<int32_t>(heads);
    const int pairs = call.spec.rope->num_pairs();
    cosine = carver.take<float>(pairs);
    sine = carver.take<float>(pairs);
    row_cosine = carver.take<float>(int64_t{rows} * pairs);
    row_sine = carver.take<float>(int64_t{rows} * pairs);
    turned_keys =
        carver.take<std::byte>(static_cast<int64_t>(call.storage.head_bytes() * kRawRunBlocks));
    return carver.bytes();
  }
};

AttentionRunner::AttentionRunner(const KernelTable& kernels, ThreadPool& threads)
    : kernels_(kernels), threads_(threads) {
  for (int w = 0; w < threads.num_threads(); ++w) workers_.push_back(std::make_unique<Worker>());
}

AttentionRunner::~AttentionRunner() = default;

Status AttentionRunner::run(const AttentionCall& call) {
  kv_ = call.storage.shape().dtype == DType::kFloat32 ? kernels_.float32_kv : kernels_.bfloat16_kv;
  if (Status status = reserve(call); !status) return status;
  make_token_turns(call);
  const AttentionPlan& plan = call.plan;
  const int num_kv_heads = call.spec.num_kv_heads;
  const auto run_task = [&](int64_t task, int worker) {
    run_item(call, plan.items[task / num_kv_heads], static_cast<int>(task % num_kv_heads),
             *workers_[worker]);
  };
  threads_.parallel_for(static_cast<int64_t>(plan.items.size()) * num_kv_heads,
                        [&run_task](int64_t task, int worker) { run_task(task, worker); });
  const auto run_merge = [&](int64_t task, int worker) {
    merge(call, plan.merges[task / num_kv_heads], static_cast<int>(task % num_kv_heads),
          *workers_[worker]);
  };
  threads_.parallel_for(static_cast<int64_t>(plan.merges.size()) * num_kv_heads,
                        [&run_merge](int64_t task, int worker) { run_merge(task, worker); });
  return {};
}

Status AttentionRunner::reserve(const AttentionCall& call) {
  int most_rows = 0;
  for (const WorkItem& item : call.plan.items) {
    most_rows = std::max(most_rows, item.row_end - item.row_begin);
  }
  for (const auto& worker : workers_) {
    const size_t bytes = worker->lay_out(nullptr, call, most_rows);
    if (worker->memory.size_bytes() < bytes) {
      Expected<HostMemory> memory = HostMemory::allocate(bytes, "a tile of attention");
      if (!memory) return memory.status();
      worker->memory = std::move(*memory);
    }
    worker->lay_out(worker->memory.data(), call, most_rows);
    worker->begins.resize(most_rows);
    worker->ends.resize(most_rows);
    worker->run_begins.resize(most_rows);
    worker->run_ends.resize(most_rows);
  }
  const size_t partial_bytes = static_cast<size_t>(call.plan.num_partials) * call.spec.num_heads *
                               (call.spec.head_dim + 2) * sizeof(float);
  if (partials_.size_bytes() < partial_bytes) {
    Expected<HostMemory> memory =
        HostMemory::allocate(partial_bytes, "partial results of attention");
    if (!memory) return memory.status();
    partials_ = std::move(*memory);
  }
  return {};
}

/// Cosines and sines of the tokens of a block, for raw keys.
void AttentionRunner::make_token_turns(const AttentionCall& call) {
  const bool needed = std::ranges::any_of(call.plan.ranges,
                                          [&](const Range& range) { return is_raw(call, range); });
  if (!needed) return;
  const int pairs = call.spec.rope->num_pairs();
  token_turns_.resize(size_t{2} * pairs * kBlockSize);
  float* cosine = workers_[0]->cosine;
  float* sine = workers_[0]->sine;
  for (int token = 0; token < kBlockSize; ++token) {
    call.spec.rope->cos_sin(token, cosine, sine);
    for (int j = 0; j < pairs; ++j) {
      token_turns_[j * kBlockSize + token] = cosine[j];
      token_turns_[(pairs + j) * kBlockSize + token] = sine[j];
    }
  }
}

void AttentionRunner::run_item(const AttentionCall& call, const WorkItem& item, int kv_head,
                               Worker& worker) {
  const RopeTable& rope = *call.spec.rope;
  worker.tile.num_rows = item.row_end - item.row_begin;
  worker.has_raw_query = false;
  kv_->reset(worker.tile);
  for (int64_t r = 0; r < worker.tile.num_rows; ++r) {
    rope.cos_sin(position_of_row(call, item, static_cast<int>(r)),
                 worker.row_cosine + r * rope.num_pairs(), worker.row_sine + r * rope.num_pairs());
  }
  for (int32_t i = item.range_begin; i < item.range_end; ++i) {
    const Range& range = call.plan.ranges[i];
    find_visible_tokens(call, item, range, worker);
    turn_queries(call, item, range, kv_head, worker);
    run_range(call, item, i, kv_head, worker);
  }
  store(call, item, kv_head, worker);
}

void AttentionRunner::find_visible_tokens(const AttentionCall& call, const WorkItem& item,
                                          const Range& range, Worker& worker) {
  for (int r = 0; r < worker.tile.num_rows; ++r) {
    const int64_t distance = position_of_row(call, item, r) - start_for_row(call, range, r);
    worker.begins[r] = range.begin;
    if (call.spec.window > 0) {
      worker.begins[r] = std::max(range.begin, distance - call.spec.window + 1);
    }
    worker.ends[r] = std::min(range.end, distance + 1);
  }
}

/// Turns the item's Q as it meets the keys of the range: by the row's position p for raw keys; else
/// by p - start + first_angle, which is p and then a shift that all rows share, if they share the
/// start.
void AttentionRunner::turn_queries(const AttentionCall& call, const WorkItem& item,
                                   const Range& range, int kv_head, Worker& worker) {
  const AttentionSpec& spec = call.spec;
  const RopeTable& rope = *spec.rope;
  const int pairs = rope.num_pairs();
  const bool raw = is_raw(call, range);
  if (raw && worker.has_raw_query) return;
  worker.has_raw_query = raw;
  const auto turned_scale = static_cast<float>(spec.scale * rope.parameters().attention_factor);
  const int64_t first_angle = call.step.placements[range.placement].span.first_angle;
  const int64_t head = int64_t{kv_head} * worker.tile.group * spec.head_dim;
  const Turn at_hand{worker.cosine, worker.sine, pairs};
  const bool one_start = range.starts < 0;
  if (!raw && one_start) {
    rope.cos_sin(first_angle - start_for_row(call, range, 0), worker.cosine, worker.sine);
  }
  for (int r = 0; r < worker.tile.num_rows; ++r) {
    const float* query = call.q.row_as<float>(call.plan.output_rows[item.row_begin + r]) + head;
    if (raw || one_start) {
      const Turn own{worker.row_cosine + int64_t{r} * pairs, worker.row_sine + int64_t{r} * pairs,
                     pairs};
      kv_->set_query(worker.tile, r, query, own, raw ? nullptr : &at_hand, spec.scale,
                     turned_scale);
    } else {
      const int64_t distance = position_of_row(call, item, r) - start_for_row(call, range, r);
      rope.cos_sin(distance + first_angle, worker.cosine, worker.sine);
      kv_->set_query(worker.tile, r, query, at_hand, nullptr, spec.scale, turned_scale);
    }
  }
}

void AttentionRunner::run_range(const AttentionCall& call, const WorkItem& item, int32_t index,
                                int kv_head, Worker& worker) {
  const Range& range = call.plan.ranges[index];
  const Placement& placement = call.step.placements[range.placement];
  const bool raw = is_raw(call, range);
  const int64_t end_block = blocks_for(range.end);
  const int most_blocks = raw ? kRawRunBlocks : kRunBlocks;
  for (int64_t first = range.begin / kBlockSize; first < end_block; first += most_blocks) {
    const int64_t end = std::min(end_block, first + most_blocks);
    worker.num_blocks = list_blocks(call, range, first, end, kv_head, 0, worker);
    int listed = list_blocks(call, range, end, std::min(end_block, end + kTileBlocks), kv_head,
                             worker.num_blocks, worker);
    if (end == end_block && index + 1 < item.range_end) {
      const Range& next = call.plan.ranges[index + 1];
      const int64_t begin = next.begin / kBlockSize;
      const int64_t next_end = std::min(blocks_for(next.end), begin + kTileBlocks);
      listed = list_blocks(call, next, begin, next_end, kv_head, listed, worker);
    }
    worker.num_ahead = listed - worker.num_blocks;
    if (raw) turn_keys(call, placement.start + first * kBlockSize, worker);
    attend(first * kBlockSize, worker);
  }
}

/// Lists blocks [begin, end) of the range's span behind the first `listed` ones; returns how many
/// are listed.
int AttentionRunner::list_blocks(const AttentionCall& call, const Range& range, int64_t begin,
                                 int64_t end, int kv_head, int listed, Worker& worker) {
  const std::span<const BlockId> blocks = call.step.placements[range.placement].span.blocks;
  for (int64_t b = begin; b < end; ++b, ++listed) {
    worker.keys[listed] = call.storage.head(call.layer, blocks[b], KvPart::kKey, kv_head);
    worker.values[listed] = call.storage.head(call.layer, blocks[b], KvPart::kValue, kv_head);
  }
  return listed;
}

/// Replaces the raw keys that the worker lists by turned ones. `position`: of the first of them.
void AttentionRunner::turn_keys(const AttentionCall& call, int64_t position, Worker& worker) {
  const RopeTable& rope = *call.spec.rope;
  const int pairs = rope.num_pairs();
  for (int b = 0; b < worker.num_blocks; ++b) {
    rope.cos_sin(position + int64_t{b} * kBlockSize, worker.cosine, worker.sine);
    std::byte* turned = worker.turned_keys + b * call.storage.head_bytes();
    const int next = std::min(b + 1, worker.num_blocks - 1);
    kv_->turn_block_by_token(worker.keys[b], worker.keys[next], turned, call.spec.head_dim,
                             {worker.cosine, worker.sine, pairs}, token_turns_.data(),
                             token_turns_.data() + pairs * kBlockSize);
    worker.keys[b] = turned;
  }
}

/// Attends to the blocks that the worker lists.
void AttentionRunner::attend(int64_t first_token, Worker& worker) {
  const int64_t num_tokens = int64_t{worker.num_blocks} * kBlockSize;
  for (int r = 0; r < worker.tile.num_rows; ++r) {
    const auto from_first = [&](int64_t token) {
      return static_cast<int32_t>(std::clamp<int64_t>(token - first_token, 0, num_tokens));
    };
    worker.run_begins[r] = from_first(worker.begins[r]);
    worker.run_ends[r] = from_first(worker.ends[r]);
  }
  kv_->attend(worker.tile, {worker.keys, worker.values, worker.num_blocks, worker.num_ahead,
                            worker.run_begins.data(), worker.run_ends.data()});
}

void AttentionRunner::store(const AttentionCall& call, const WorkItem& item, int kv_head,
                            Worker& worker) {
  const int64_t group = worker.tile.group;
  const int64_t head_dim = worker.tile.head_dim;
  for (int r = 0; r < worker.tile.num_rows; ++r) {
    if (item.partial < 0) {
      std::byte* row = call.out.row(call.plan.output_rows[item.row_begin + r]);
      kv_->store_output(worker.tile, r, call.out.dtype,
                        row + kv_head * group * head_dim * dtype_size(call.out.dtype));
    } else {
      const int64_t head = (int64_t{item.partial} + r) * call.spec.num_heads + kv_head * group;
      auto* partials = reinterpret_cast<float*>(partials_.data());
      kv_->store_partial(worker.tile, r, partials + head * (head_dim + 2));
    }
  }
}

void AttentionRunner::merge(const AttentionCall& call, const Merge& order, int kv_head,
                            Worker& worker) {
  const int64_t group = group_of(call.spec);
  const int head_dim = call.spec.head_dim;
  const auto* partials = reinterpret_cast<const float*>(partials_.data());
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    worker.partials.clear();
    for (int32_t s = order.slot_begin; s < order.slot_end; ++s) {
      const int64_t place = int64_t{call.plan.slots[s]} * call.spec.num_heads + head;
      worker.partials.push_back(partials + place * (head_dim + 2));
    }
    kernels_.merge_partials(
        worker.partials.data(), static_cast<int>(worker.partials.size()), head_dim, call.out.dtype,
        call.out.row(order.output_row) + head * head_dim * dtype_size(call.out.dtype));
  }
}

}  // namespace anyslot::cpu

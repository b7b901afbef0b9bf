#include "backend/cpu/attention_runner.h"

#include <algorithm>
#include <utility>

#include "backend/cpu/attention_worker.h"
#include "backend/cpu/kernel_list.h"

namespace anyslot::cpu {

namespace {

/// Of a row of the plan.
int64_t position_of(const AttentionCall& call, int32_t row) {
  return call.step.rows[call.plan.rows[row]].position;
}

int64_t start_for_row(const AttentionCall& call, const Range& range, int r) {
  return range.starts < 0 ? call.step.placements[range.placement].start
                          : call.plan.starts[range.starts + r];
}

bool is_raw(const AttentionCall& call, const Range& range) {
  return call.step.placements[range.placement].span.key_form == KeyForm::kRaw;
}

/// Many rows profit from long tiles, as long as a tile of K stays in the first-level cache. Few
/// rows wait for memory, and better so for a little at a time.
int tile_blocks_for(const AttentionCall& call, int num_rows) {
  constexpr int kFewHeads = 24;
  constexpr size_t kMostBytes = 16384;  // of a tile's K
  const size_t long_tile = call.storage.head_bytes() * kTileBlocks;
  const bool is_long = num_rows * group_of(call.spec) > kFewHeads && long_tile <= kMostBytes;
  return is_long ? kTileBlocks : kTileBlocks / 2;
}

}  // namespace

AttentionRunner::AttentionRunner(const KernelTable& kernels, ThreadPool& threads)
    : kernels_(kernels), threads_(threads) {
  for (int w = 0; w < threads.num_threads(); ++w) workers_.push_back(std::make_unique<Worker>());
}

AttentionRunner::~AttentionRunner() = default;

int AttentionRunner::tasks_of_item(int num_kv_heads) {
  return (num_kv_heads + kTaskHeads - 1) / kTaskHeads;
}

Status AttentionRunner::run(const AttentionCall& call) {
  kv_ = &kv_kernels_of(kernels_, call.storage.shape().dtype);
  if (Status status = reserve(call); !status) return status;
  make_token_turns(call);
  const AttentionPlan& plan = call.plan;
  const int num_kv_heads = call.spec.num_kv_heads;
  const int num_tasks = tasks_of_item(num_kv_heads);
  const auto run_task = [&](int64_t task, int worker) {
    const int part = static_cast<int>(task % num_tasks);
    const KvHeads heads{num_kv_heads * part / num_tasks, num_kv_heads * (part + 1) / num_tasks};
    run_item(call, plan.items[task / num_tasks], heads, *workers_[worker]);
  };
  threads_.parallel_for(static_cast<int64_t>(plan.items.size()) * num_tasks,
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
  size_t most_partials = 0;  // of a merge, whichever worker will do it
  for (const Merge& merge : call.plan.merges) {
    most_partials = std::max(most_partials, static_cast<size_t>(merge.slot_end - merge.slot_begin));
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
    worker->partials.reserve(most_partials);
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

void AttentionRunner::run_item(const AttentionCall& call, const WorkItem& item, KvHeads heads,
                               Worker& worker) {
  const RopeTable& rope = *call.spec.rope;
  const int32_t num_rows = item.row_end - item.row_begin;
  worker.item_row = item.row_begin;
  worker.tile_blocks = tile_blocks_for(call, num_rows);
  for (int h = 0; h < heads.size(); ++h) {
    worker.tiles[h].num_rows = num_rows;
    kv_->reset(worker.tiles[h]);
  }
  for (int64_t r = 0; r < num_rows; ++r) {
    rope.cos_sin(position_of(call, item.row_begin + static_cast<int32_t>(r)),
                 worker.row_cosine + r * rope.num_pairs(), worker.row_sine + r * rope.num_pairs());
  }
  worker.take_rows(0, num_rows, heads.size());
  for (int32_t i = item.range_begin; i < item.range_end; ++i) {
    const Range& range = call.plan.ranges[i];
    if (range.row_end > 0) worker.take_rows(range.row_begin, range.row_end, heads.size());
    find_visible_tokens(call, range, worker);
    turn_queries(call, range, heads, worker);
    run_range(call, item, i, heads, worker);
  }
  store(call, item, heads, worker);
}

void AttentionRunner::find_visible_tokens(const AttentionCall& call, const Range& range,
                                          Worker& worker) {
  for (int r = 0; r < worker.num_rows; ++r) {
    const int64_t distance = position_of(call, worker.plan_row(r)) - start_for_row(call, range, r);
    worker.begins[r] = range.begin;
    if (call.spec.window > 0) {
      worker.begins[r] = std::max(range.begin, distance - call.spec.window + 1);
    }
    worker.ends[r] = std::min(range.end, distance + 1);
  }
}

/// Turns Q of the rows at hand as it meets the keys of the range: by the row's position p for raw
/// keys; else by p - start + first_angle, which is p and then a shift that all rows share, if they
/// share the start.
void AttentionRunner::turn_queries(const AttentionCall& call, const Range& range, KvHeads heads,
                                   Worker& worker) {
  const AttentionSpec& spec = call.spec;
  const RopeTable& rope = *spec.rope;
  const int pairs = rope.num_pairs();
  const bool raw = is_raw(call, range);
  if (raw && worker.has_raw_query) return;
  worker.has_raw_query = raw;
  const auto turned_scale = static_cast<float>(spec.scale * rope.parameters().attention_factor);
  const int64_t first_angle = call.step.placements[range.placement].span.first_angle;
  const int64_t head_cols = int64_t{group_of(spec)} * spec.head_dim;
  const Turn at_hand{worker.cosine, worker.sine, pairs};
  const Turn of_query{worker.query_cosine, worker.query_sine, pairs};
  const bool one_start = range.starts < 0;
  if (!raw && one_start) {
    rope.cos_sin(first_angle - start_for_row(call, range, 0), worker.cosine, worker.sine);
  }
  for (int r = 0; r < worker.num_rows; ++r) {
    const int32_t plan_row = worker.plan_row(r);
    if (raw || one_start) {
      const int64_t own = int64_t{worker.first_row + r} * pairs;
      kv_->compose_turns({worker.row_cosine + own, worker.row_sine + own, pairs},
                         raw ? nullptr : &at_hand, turned_scale, worker.query_cosine,
                         worker.query_sine);
    } else {
      const int64_t distance = position_of(call, plan_row) - start_for_row(call, range, r);
      rope.cos_sin(distance + first_angle, worker.cosine, worker.sine);
      kv_->compose_turns(at_hand, nullptr, turned_scale, worker.query_cosine, worker.query_sine);
    }
    const float* query = call.q.row_as<float>(call.plan.output_rows[plan_row]);
    for (int h = 0; h < heads.size(); ++h) {
      kv_->set_query(worker.at_hand[h], r, query + (heads.begin + h) * head_cols, of_query,
                     spec.scale);
    }
  }
}

void AttentionRunner::run_range(const AttentionCall& call, const WorkItem& item, int32_t index,
                                KvHeads heads, Worker& worker) {
  const Range& range = call.plan.ranges[index];
  const Placement& placement = call.step.placements[range.placement];
  const bool raw = is_raw(call, range);
  const int64_t end_block = blocks_for(range.end);
  const int most_blocks = raw ? kRawRunBlocks : kRunBlocks;
  for (int64_t first = range.begin / kBlockSize; first < end_block; first += most_blocks) {
    const BlockRun run{first, std::min(end_block, first + most_blocks)};
    worker.num_listed = list_blocks(call, range, run, heads, 0, worker);
    if (raw) turn_keys(call, placement.start + first * kBlockSize, run, heads, worker);
    if (run.end < end_block) {
      const BlockRun next{run.end, std::min(end_block, run.end + worker.tile_blocks)};
      worker.num_listed = list_blocks(call, range, next, heads, worker.num_listed, worker);
    } else if (index + 1 < item.range_end) {
      const Range& next_range = call.plan.ranges[index + 1];
      const int64_t begin = next_range.begin / kBlockSize;
      const BlockRun next{begin, std::min(blocks_for(next_range.end), begin + worker.tile_blocks)};
      worker.num_listed = list_blocks(call, next_range, next, heads, worker.num_listed, worker);
    }
    attend(run, heads, worker);
  }
}

/// Lists blocks of the range's span behind the first `listed` ones, as they are attended to;
/// returns how many are listed.
int AttentionRunner::list_blocks(const AttentionCall& call, const Range& range, BlockRun blocks,
                                 KvHeads heads, int listed, Worker& worker) {
  const std::span<const BlockId> ids = call.step.placements[range.placement].span.blocks;
  blocks.for_tiles(worker.tile_blocks, [&](int64_t first, int count) {
    for (int head = heads.begin; head < heads.end; ++head) {
      for (int64_t b = first; b < first + count; ++b, ++listed) {
        worker.keys[listed] = call.storage.head(call.layer, ids[b], KvPart::kKey, head);
        worker.values[listed] = call.storage.head(call.layer, ids[b], KvPart::kValue, head);
      }
    }
  });
  return listed;
}

/// Replaces the raw keys that the worker lists by turned ones. `position`: of the first of them.
void AttentionRunner::turn_keys(const AttentionCall& call, int64_t position, BlockRun blocks,
                                KvHeads heads, Worker& worker) {
  const RopeTable& rope = *call.spec.rope;
  const int pairs = rope.num_pairs();
  const int num_listed = worker.num_listed;
  int listed = 0;
  blocks.for_tiles(worker.tile_blocks, [&](int64_t, int count) {
    for (int b = 0; b < count; ++b, position += kBlockSize) {
      rope.cos_sin(position, worker.cosine, worker.sine);
      kv_->add_token_turns({worker.cosine, worker.sine, pairs}, token_turns_.data(),
                           token_turns_.data() + pairs * kBlockSize, worker.block_cosine,
                           worker.block_sine);
      for (int h = 0; h < heads.size(); ++h) {
        const int i = listed + h * count + b;
        std::byte* turned = worker.turned_keys + i * call.storage.head_bytes();
        const int next =
            std::min(h + 1 < heads.size() ? i + count : listed + b + 1, num_listed - 1);
        kv_->turn_block_by_token(worker.keys[i], worker.keys[next], turned, call.spec.head_dim,
                                 pairs, worker.block_cosine, worker.block_sine);
        worker.keys[i] = turned;
      }
    }
    listed += count * heads.size();
  });
}

/// Attends to the blocks that the worker lists.
void AttentionRunner::attend(BlockRun blocks, KvHeads heads, Worker& worker) {
  const int64_t first_token = blocks.begin * kBlockSize;
  const int64_t num_tokens = (blocks.end - blocks.begin) * kBlockSize;
  for (int r = 0; r < worker.num_rows; ++r) {
    const auto from_first = [&](int64_t token) {
      return static_cast<int32_t>(std::clamp<int64_t>(token - first_token, 0, num_tokens));
    };
    worker.run_begins[r] = from_first(worker.begins[r]);
    worker.run_ends[r] = from_first(worker.ends[r]);
  }
  kv_->attend(
      worker.at_hand, heads.size(),
      {worker.keys, worker.values, static_cast<int>(blocks.end - blocks.begin), worker.tile_blocks,
       worker.num_listed, worker.run_begins.data(), worker.run_ends.data()});
}

void AttentionRunner::store(const AttentionCall& call, const WorkItem& item, KvHeads heads,
                            Worker& worker) {
  const int64_t group = group_of(call.spec);
  const int64_t head_dim = call.spec.head_dim;
  const auto out_bytes = static_cast<int64_t>(dtype_size(call.out.dtype));
  auto* partials = reinterpret_cast<float*>(partials_.data());
  for (int r = 0; r < item.row_end - item.row_begin; ++r) {
    for (int h = 0; h < heads.size(); ++h) {
      const int64_t head = (heads.begin + h) * group;
      if (item.partial < 0) {
        std::byte* row = call.out.row(call.plan.output_rows[item.row_begin + r]);
        kv_->store_output(worker.tiles[h], r, call.out.dtype, row + head * head_dim * out_bytes);
      } else {
        const int64_t place = (int64_t{item.partial} + r) * call.spec.num_heads + head;
        kv_->store_partial(worker.tiles[h], r, partials + place * (head_dim + 2));
      }
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

#include "attention_bench.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "attention_check.h"
#include "base/random_normal.h"
#include "cli/statistics.h"
#include "model/architecture.h"

namespace anyslot::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kSeed = 2026;
constexpr int64_t kBeyondCaches = int64_t{256} << 20;  // bytes
constexpr size_t kMostSteps = 64;
constexpr std::chrono::microseconds kWaking{150};

/// The rotation of the model's first layer.
RopeParameters rope_of(const ModelConfig& model) {
  const ModelDescription description = find_architecture(model.architecture)->describe(model);
  return description.ropes[static_cast<size_t>(description.layers.front().rope)];
}

RopeParameters without_angles(RopeParameters rope) {
  std::ranges::fill(rope.inv_freq, 0.0);
  return rope;
}

KvShape kv_shape(const ModelConfig& model, DType dtype, int64_t num_blocks) {
  return {.num_layers = 1,
          .num_kv_heads = model.num_kv_heads,
          .head_dim = model.head_dim,
          .dtype = dtype,
          .num_blocks = num_blocks};
}

Status fill_with_random(KvStorage& storage) {
  const RandomNormal normal(1.0);
  const size_t size = storage.shape().block_bytes() / dtype_size(storage.shape().dtype);
  std::vector<bf16_t> values(size);
  std::vector<std::byte> bytes(storage.shape().block_bytes());
  for (BlockId block = 0; block < storage.shape().num_blocks; ++block) {
    normal.fill(kSeed, int64_t{block} * static_cast<int64_t>(size), values);
    for (size_t i = 0; i < size; ++i) {
      store_element(bytes.data(), storage.shape().dtype, i, bf16_to_float(values[i]));
    }
    if (Status status = storage.import_block(block, bytes); !status.ok()) return status;
  }
  return {};
}

Status make_room(Backend& backend, size_t bytes, std::unique_ptr<DeviceBuffer>& buffer) {
  if (buffer != nullptr && buffer->size_bytes() >= bytes) return {};
  Expected<std::unique_ptr<DeviceBuffer>> allocated = backend.allocate(bytes);
  if (!allocated) return allocated.status();
  buffer = *std::move(allocated);
  return {};
}

}  // namespace

AttentionBench::AttentionBench(const ModelConfig& model, const AttentionBenchOptions& options)
    : options_(options),
      rope_(rope_of(model)),
      zero_rope_(without_angles(rope_of(model))),
      no_rope_(RopeParameters{}),
      spec_{.num_heads = model.num_heads,
            .num_kv_heads = model.num_kv_heads,
            .head_dim = model.head_dim,
            .scale = 1.0F / std::sqrt(static_cast<float>(model.head_dim)),
            .window = 0,
            .rope = &rope_} {}

Expected<std::unique_ptr<AttentionBench>> AttentionBench::create(
    const ModelConfig& model, int64_t num_blocks, const AttentionBenchOptions& options) {
  std::unique_ptr<AttentionBench> bench(new AttentionBench(model, options));
  if (Status status = bench->open(model, num_blocks); !status.ok()) return status;
  return bench;
}

Status AttentionBench::open(const ModelConfig& model, int64_t num_blocks) {
  Expected<std::unique_ptr<Backend>> backend = create_cpu_backend(
      {.dtype = options_.dtype, .num_threads = options_.num_threads, .max_isa = options_.max_isa});
  if (!backend) return backend.status();
  backend_ = *std::move(backend);
  const auto block_bytes =
      static_cast<int64_t>(kv_shape(model, options_.kv_dtype, 1).block_bytes());
  const int64_t pool = std::max(num_blocks, kBeyondCaches / block_bytes);
  auto storage = backend_->create_kv_storage(kv_shape(model, options_.kv_dtype, pool));
  if (!storage) return storage.status();
  storage_ = *std::move(storage);
  return fill_with_random(*storage_);
}

/// As many as the pool holds: blocks lie scattered in it, as after some time of service.
std::vector<AttentionStep> AttentionBench::make_steps(const AttentionCase& attention_case) const {
  std::vector<BlockId> pool(static_cast<size_t>(storage_->shape().num_blocks));
  std::iota(pool.begin(), pool.end(), 0);
  std::shuffle(pool.begin(), pool.end(), std::mt19937_64(kSeed));
  const auto needed = static_cast<size_t>(blocks_of(attention_case));
  std::vector<AttentionStep> steps;
  while (pool.size() >= needed && steps.size() < kMostSteps) {
    steps.emplace_back(attention_case, pool);
  }
  return steps;
}

Status AttentionBench::reserve_rows(int64_t num_rows) {
  const int64_t cols = int64_t{spec_.num_heads} * spec_.head_dim;
  const auto size = static_cast<size_t>(num_rows * cols);
  Status status = make_room(*backend_, size * sizeof(float), q_buffer_);
  if (status.ok()) status = make_room(*backend_, size * dtype_size(options_.dtype), out_buffer_);
  if (!status.ok()) return status;
  q_ = {q_buffer_->data(), DType::kFloat32, num_rows, cols, cols};
  out_ = {out_buffer_->data(), options_.dtype, num_rows, cols, cols};
  std::vector<bf16_t> values(size);
  RandomNormal(1.0).fill(kSeed + 1, 0, values);
  std::ranges::transform(values, q_.row_as<float>(0), bf16_to_float);
  return {};
}

Expected<AttentionBench::StepTimes> AttentionBench::run_step(const StepPlan& plan,
                                                             const RopeTable& rope) {
  const std::vector<int64_t> windows = {spec_.window};
  spec_.rope = &rope;
  StepTimes times;
  Clock::time_point start = Clock::now();
  if (Status status = backend_->begin_step(plan, windows); !status.ok()) return status;
  times.plan = seconds_since(start);
  // The threads that the step wakes are awake in a model long before its first attention.
  std::this_thread::sleep_for(kWaking);
  start = Clock::now();
  const Status status = backend_->attention(*storage_, 0, spec_, RowSet::kAll, q_, out_);
  times.attention = seconds_since(start);
  const Status end = backend_->end_step();
  if (!status.ok()) return status;
  if (!end.ok()) return end;
  return times;
}

Status AttentionBench::measure(const std::vector<AttentionStep>& steps, AttentionResult& result) {
  std::vector<double> plan_times;
  std::vector<double> zero_ratios;
  std::vector<double> unturned_ratios;
  size_t next = 0;
  const auto run_next = [&](const RopeTable& rope) {
    return run_step(steps[next++ % steps.size()].plan(), rope);
  };
  const auto compare = [&](double seconds, const RopeTable& rope,
                           std::vector<double>& ratios) -> Status {
    const Expected<StepTimes> other = run_next(rope);
    if (!other) return other.status();
    ratios.push_back(seconds / other->attention);
    return {};
  };
  const Expected<std::vector<double>> times =
      time_runs(options_.limits, [&](int) -> Expected<double> {
        const Expected<StepTimes> step = run_next(rope_);
        if (!step) return step.status();
        plan_times.push_back(step->plan);
        if (options_.angles_zero) {
          Status status = compare(step->attention, zero_rope_, zero_ratios);
          if (status.ok()) status = compare(step->attention, no_rope_, unturned_ratios);
          if (!status.ok()) return status;
        }
        return step->attention;
      });
  if (!times) return times.status();
  result.seconds = cli::median(*times);
  result.plan_seconds = cli::median(plan_times);
  result.zero_ratio = cli::median(zero_ratios);
  result.unturned_ratio = cli::median(unturned_ratios);
  return {};
}

Expected<AttentionResult> AttentionBench::run(const AttentionCase& attention_case) {
  const std::vector<AttentionStep> steps = make_steps(attention_case);
  const StepPlan& plan = steps.front().plan();
  Status status = reserve_rows(static_cast<int64_t>(plan.rows.size()));
  if (!status.ok()) return status;
  AttentionResult result;
  if (status = measure(steps, result); !status.ok()) return status;

  const double bytes_of_token = 2.0 * spec_.num_kv_heads * spec_.head_dim *
                                static_cast<double>(dtype_size(options_.kv_dtype));
  result.operations =
      4.0 * spec_.num_heads * spec_.head_dim * static_cast<double>(count_visible_pairs(plan));
  result.bytes_read = bytes_of_token * static_cast<double>(plan.kv_tokens_read);
  result.distinct_bytes = bytes_of_token * static_cast<double>(count_distinct_tokens(plan));

  if (const auto last = run_step(plan, rope_); !last) return last.status();
  const std::vector<int32_t> rows = rows_to_check(plan, options_.checked_rows);
  const Expected<std::vector<float>> expected =
      reference_attention(plan, rows, *storage_, spec_, q_);
  if (!expected) return expected.status();
  result.error = largest_row_error(out_, rows, *expected);
  return result;
}

}  // namespace anyslot::bench

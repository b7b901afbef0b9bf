#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_check.h"
#include "backend/test_step_builder.h"
#include "base/compute_type.h"

// cuda_attention_timing [bfloat16 | float16 [TEXT [sm_80 | sm_90a [auto | fp8]]]]: with a TEXT, the
// cases whose names hold it; then the newest kernels to use ('' for all), and the type of KV.
// Times the attention of one layer on the GPU, over inputs that rotate beyond its L2 cache, and
// compares each result with the plain kernel's on the same inputs. Exit code 1 when one is wrong.
// `zero` is the time over that with all angles 0, `one` over that with all documents as one, whose
// queries are turned but once. Then the copies of method block, beside the device's own copy.

namespace anyslot::cuda {
namespace {

constexpr int kHeads = 32;
constexpr int kKvHeads = 8;
constexpr int kHeadDim = 128;
constexpr size_t kRotatedBytes = size_t{300} << 20;  // five times the L2 of an H200
constexpr double kErrorBound = 1.0 / 64;

struct Case {
  const char* name;
  int batch;
  int query_tokens;
  int context;
  int document_tokens;
  bool shared;
  int text_tokens;  // KV of the request's own text, its queries included
  KeyForm key_form = KeyForm::kTurned;
};
constexpr Case kCases[] = {
    {"decode 1 x 4096", 1, 1, 4096, 1024, false, 16},
    {"decode 1 x 16384", 1, 1, 16384, 1024, false, 16},
    {"decode 8 x 4096", 8, 1, 4096, 1024, false, 16},
    {"decode 8 x 16384", 8, 1, 16384, 1024, false, 16},
    {"decode 32 x 4096", 32, 1, 4096, 1024, false, 16},
    {"decode 32 x 16384", 32, 1, 16384, 1024, false, 16},
    {"decode 128 x 4096", 128, 1, 4096, 1024, false, 16},
    {"decode 64, one shared document of 16384", 64, 1, 16384, 16384, true, 16},
    {"prefill 32 over 2048", 1, 32, 2048, 512, false, 32},
    {"prefill 32 over 16384", 1, 32, 16384, 512, false, 32},
    {"prefill 64 over 80 documents of 200", 1, 64, 16000, 200, false, 64},
    {"prefill 64 over 4096", 1, 64, 4096, 512, false, 64},
    {"prefill 8 x 64 over 4096", 8, 64, 4096, 512, false, 64},
    {"prefill 512 over 16384", 1, 512, 16384, 512, false, 512},
    {"prefill 2048 over 2048", 1, 2048, 2048, 512, false, 2048},
    {"prefill 4096 over nothing", 1, 4096, 0, 512, false, 4096},
    {"prefill 1024 over 32768", 1, 1024, 32768, 512, false, 1024},
    {"encode 16 x 1024", 16, 1024, 0, 1024, false, 1024},
    {"mepic decode 1 x 16384", 1, 1, 16384, 1024, false, 16, KeyForm::kRaw},
    {"mepic decode 32 x 16384", 32, 1, 16384, 1024, false, 16, KeyForm::kRaw},
    {"mepic prefill 64 over 4096", 1, 64, 4096, 512, false, 64, KeyForm::kRaw},
    {"mepic prefill 1024 over 32768", 1, 1024, 32768, 512, false, 1024, KeyForm::kRaw},
};

TestStepBuilder make_step(const Case& c) {
  TestStepBuilder step;
  SpanView shared;
  if (c.shared) shared = step.span(c.context, c.key_form);
  for (int b = 0; b < c.batch; ++b) {
    step.begin_sequence();
    int64_t start = c.shared ? 7 * b : 0;
    for (int64_t done = 0; done < c.context; done += c.document_tokens) {
      const int64_t tokens = std::min<int64_t>(c.document_tokens, c.context - done);
      step.place(c.shared ? shared : step.span(tokens, c.key_form), start);
      start += tokens;
    }
    step.place(step.span(c.text_tokens, KeyForm::kTurned, start), start);
    step.rows(start + c.text_tokens - c.query_tokens, c.query_tokens);
  }
  return step;
}

void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}
template <typename T>
T take(Expected<T> value) {
  require(value.status());
  return std::move(value).value();
}

std::vector<float> to_floats(DeviceBuffer& buffer, DType dtype) {
  std::vector<std::byte> bytes(buffer.size_bytes());
  require(buffer.read(bytes));
  std::vector<float> values(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_element(bytes.data(), dtype, i);
  return values;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0;
  double length = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    error += (double{actual[i]} - expected[i]) * (double{actual[i]} - expected[i]);
    length += double{expected[i]} * expected[i];
  }
  return std::sqrt(error / length);
}

/// One case in memory of a backend.
struct Setup {
  TestStepBuilder step;
  std::unique_ptr<KvStorage> storage;
  std::unique_ptr<DeviceBuffer> q;
  std::unique_ptr<DeviceBuffer> out;
  TensorView q_view;
  TensorView out_view;
};

Setup make_setup(Backend& backend, const Case& c, DType kv_dtype) {
  std::mt19937 random(20261130);
  std::normal_distribution<float> normal;
  Setup setup{make_step(c), nullptr, nullptr, nullptr, {}, {}};
  const int64_t num_blocks = setup.step.num_blocks();
  const KvShape one{1, kKvHeads, kHeadDim, kv_dtype, num_blocks};
  const auto layers = static_cast<int>(kRotatedBytes / (one.block_bytes() * num_blocks)) + 1;
  const KvShape shape{layers, kKvHeads, kHeadDim, kv_dtype, num_blocks};
  setup.storage = take(backend.create_kv_storage(shape));
  // Blocks are windows of one array of random numbers, each somewhere else.
  constexpr size_t kPlaces = size_t{1} << 20;
  const size_t element_bytes = dtype_size(kv_dtype);
  std::vector<std::byte> numbers(shape.block_bytes() + kPlaces * element_bytes);
  for (size_t i = 0; i < numbers.size() / element_bytes; ++i) {
    store_element(numbers.data(), kv_dtype, i, normal(random));
  }
  for (BlockId b = 0; b < num_blocks; ++b) {
    const std::byte* begin = numbers.data() + random() % kPlaces * element_bytes;
    require(setup.storage->import_block(b, {begin, shape.block_bytes()}));
  }
  const auto rows = static_cast<int64_t>(setup.step.step.rows.size());
  const int64_t cols = kHeads * kHeadDim;
  std::vector<float> q(static_cast<size_t>(rows * cols));
  for (float& element : q) element = normal(random);
  setup.q = take(backend.allocate(q.size() * sizeof(float)));
  require(setup.q->write(std::as_bytes(std::span(q))));
  const DType dtype = backend.activation_dtype();
  setup.out = take(backend.allocate(q.size() * dtype_size(dtype)));
  setup.q_view = {setup.q->data(), DType::kFloat32, rows, cols, cols};
  setup.out_view = {setup.out->data(), dtype, rows, cols, cols};
  return setup;
}

int64_t visible_pairs(const StepPlan& step) {
  int64_t pairs = 0;
  for (const Row& row : step.rows) {
    const SequencePlan& sequence = step.sequences[row.sequence];
    for (int32_t p = sequence.placement_begin; p < sequence.placement_end; ++p) {
      const Placement& placement = step.placements[p];
      pairs += std::clamp<int64_t>(row.position - placement.start + 1, 0, placement.end);
    }
  }
  return pairs;
}

/// Median microseconds of a call on the device: a graph of calls, each in another layer.
double time_calls(Backend& backend, const Setup& setup, const AttentionSpec& spec,
                  cudaStream_t stream) {
  const int layers = setup.storage->shape().num_layers;
  const auto call = [&](int i) {
    require(backend.attention(*setup.storage, i % layers, spec, RowSet::kAll, setup.q_view,
                              setup.out_view));
  };
  call(0);  // what is computed once per step is no part of a call
  require(cuda_status(cudaStreamSynchronize(stream), "warming up"));
  constexpr int kCalls = 20;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  require(cuda_status(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture"));
  for (int i = 0; i < kCalls; ++i) call(i);
  require(cuda_status(cudaStreamEndCapture(stream, &graph), "capture"));
  require(cuda_status(cudaGraphInstantiate(&runnable, graph, 0), "capture"));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  require(cuda_status(cudaEventCreate(&begin), "an event"));
  require(cuda_status(cudaEventCreate(&end), "an event"));
  constexpr int kRuns = 15;
  std::vector<float> times;
  for (int run = -3; run < kRuns; ++run) {
    require(cuda_status(cudaEventRecord(begin, stream), "an event"));
    require(cuda_status(cudaGraphLaunch(runnable, stream), "a graph"));
    require(cuda_status(cudaEventRecord(end, stream), "an event"));
    require(cuda_status(cudaEventSynchronize(end), "timing"));
    float ms = 0;
    require(cuda_status(cudaEventElapsedTime(&ms, begin, end), "timing"));
    if (run >= 0) times.push_back(ms * 1000 / kCalls);
  }
  std::ranges::sort(times);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
  return times[kRuns / 2];
}

RopeTable make_rope(double base_frequency) {
  RopeParameters parameters;
  for (int j = 0; j < kHeadDim / 2; ++j) {
    parameters.inv_freq.push_back(base_frequency * std::pow(500'000.0, -2.0 * j / kHeadDim));
  }
  return RopeTable(parameters);
}

AttentionSpec spec_of(const RopeTable& rope) {
  return {kHeads, kKvHeads, kHeadDim, 1.0F / std::sqrt(float{kHeadDim}), 0, &rope};
}

const std::vector<int64_t> kNoWindow = {0};

std::vector<float> result_of(Backend& backend, Setup& setup, const AttentionSpec& spec) {
  require(backend.begin_step(setup.step.step, kNoWindow));
  require(backend.attention(*setup.storage, 0, spec, RowSet::kAll, setup.q_view, setup.out_view));
  std::vector<float> values = to_floats(*setup.out, backend.activation_dtype());
  require(backend.end_step());
  return values;
}

double time_step(Backend& backend, const Setup& setup, const AttentionSpec& spec,
                 cudaStream_t stream) {
  require(backend.begin_step(setup.step.step, kNoWindow));
  const double us = time_calls(backend, setup, spec, stream);
  require(backend.end_step());
  return us;
}

bool run_case(Backend& backend, Backend& plain, DType kv_dtype, cudaStream_t stream,
              const Case& c) {
  Setup setup = make_setup(backend, c, kv_dtype);
  const RopeTable rope = make_rope(1.0);
  const RopeTable zero_rope = make_rope(0.0);
  const AttentionSpec spec = spec_of(rope);
  static_cast<void>(result_of(backend, setup, spec));  // learns the number of heads that share K
  const std::vector<float> actual = result_of(backend, setup, spec);
  const std::vector<float> expected = result_of(plain, setup, spec);
  const double error = relative_error(actual, expected);

  const double us = time_step(backend, setup, spec, stream);
  const double zero = us / time_step(backend, setup, spec_of(zero_rope), stream);
  double one = 1.0;
  if (!c.shared && c.context > 0) {
    Case one_document = c;
    one_document.document_tokens = c.context;
    one = us / time_step(backend, make_setup(backend, one_document, kv_dtype), spec, stream);
  }
  const double bytes = 2.0 * static_cast<double>(dtype_size(kv_dtype)) * kKvHeads * kHeadDim *
                       setup.step.num_blocks() * kBlockSize;
  const double flops =
      4.0 * kHeads * kHeadDim * static_cast<double>(visible_pairs(setup.step.step));
  const bool right = error <= kErrorBound;
  std::printf("%-42s %9.1f us %6.2f TB/s %6.1f TFLOP/s  zero %.3f  one %.3f  error %.1e%s\n",
              c.name, us, bytes / us / 1e6, flops / us / 1e6, zero, one, error,
              right ? "" : "  WRONG");
  std::fflush(stdout);
  return right;
}

double seconds_of(const std::function<void()>& work) {
  std::vector<double> times;
  for (int run = 0; run < 9; ++run) {
    require(cuda_status(cudaDeviceSynchronize(), "timing"));
    const auto begin = std::chrono::steady_clock::now();
    work();
    require(cuda_status(cudaDeviceSynchronize(), "timing"));
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void time_copies(Backend& backend, DType kv_dtype, int num_copies) {
  constexpr int kLayers = 32;
  const KvShape shape{kLayers, kKvHeads, kHeadDim, kv_dtype, 2 * num_copies};
  const std::unique_ptr<KvStorage> storage = take(backend.create_kv_storage(shape));
  const RopeTable rope = make_rope(1.0);
  const std::vector<const RopeTable*> ropes(kLayers, &rope);
  std::vector<BlockCopy> copies;
  for (int i = 0; i < num_copies; ++i) {
    copies.push_back({i, num_copies + (i * 7) % num_copies, kBlockSize, 100 + i / 13 * 200});
  }
  const double bytes = 2.0 * static_cast<double>(shape.block_bytes()) * num_copies;
  const double ours = seconds_of([&] { require(backend.copy_blocks(*storage, copies, ropes)); });
  const auto device = take(backend.allocate(static_cast<size_t>(bytes)));
  auto* memory = static_cast<std::byte*>(device->data());
  const auto half = static_cast<size_t>(bytes) / 2;
  const double peer = seconds_of([&] {
    require(cuda_status(cudaMemcpyAsync(memory + half, memory, half, cudaMemcpyDeviceToDevice),
                        "copying"));
  });
  std::printf(
      "copies of %5d blocks, turned               %9.1f us %6.2f TB/s; cudaMemcpy %.2f TB/s\n",
      num_copies, ours * 1e6, bytes / ours / 1e12, bytes / peer / 1e12);
}

}  // namespace
}  // namespace anyslot::cuda

int main(int argc, char** argv) {
  using namespace anyslot;
  const auto type = cuda::take(parse_compute_type(argc > 1 ? argv[1] : "bfloat16"));
  if (type == ComputeType::kFloat32) {
    std::fprintf(stderr, "bfloat16 and float16 are timed, not float32\n");
    return 2;
  }
  BackendOptions options;
  options.dtype = dtype_of(type);
  if (argc > 3) options.max_isa = argv[3];
  const auto kv_type = cuda::take(parse_kv_cache_type(argc > 4 ? argv[4] : "auto"));
  const DType kv_dtype = kv_dtype_of(kv_type, type);
  cudaStream_t stream = nullptr;
  cuda::require(cuda::cuda_status(cudaStreamCreate(&stream), "a stream"));
  const auto backend = cuda::take(cuda::open_cuda_backend(options, {true, stream}));
  const auto plain = cuda::take(cuda::open_cuda_backend(options, {.tensor_cores = false}));
  std::printf("%s, KV of %s\n", backend->description().c_str(),
              std::string(dtype_name(kv_dtype)).c_str());
  bool right = true;
  const std::string_view text = argc > 2 ? argv[2] : "";
  for (const cuda::Case& c : cuda::kCases) {
    if (std::string_view(c.name).find(text) == std::string_view::npos) continue;
    right = cuda::run_case(*backend, *plain, kv_dtype, stream, c) && right;
  }
  if (!text.empty()) return right ? 0 : 1;
  for (const int num_copies : {256, 1024, 4096}) cuda::time_copies(*backend, kv_dtype, num_copies);
  return right ? 0 : 1;
}

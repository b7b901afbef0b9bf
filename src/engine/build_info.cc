#include "anyslot/build_info.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>
#include <utf8proc.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "backend/cpu/cpu_features.h"
#include "backend/ops.h"
#include "base/cpu_count.h"
#include "base/system_memory.h"

namespace anyslot {

namespace {

std::string instruction_sets() {
  const cpu::CpuFeatures features = cpu::detect_cpu_features();
  std::string names;
  if (features.avx2) names += " avx2";
  if (features.avx512) names += " avx512";
  if (features.avx512_bf16) names += " avx512_bf16";
  return names.empty() ? "none that the CPU backend uses" : names.substr(1);
}

std::string kernels_in_use() {
  BackendOptions options;
  options.num_threads = default_num_threads();
  const auto backend = create_cpu_backend(options);
  return backend.ok() ? (*backend)->description() : backend.status().message();
}

std::string gpu_in_use() {
  const auto backend = create_cuda_backend({});
  return backend.ok() ? (*backend)->description() : backend.status().message();
}

std::string pcre2_version() {
  char version[64] = {};
  return pcre2_config(PCRE2_CONFIG_VERSION, version) > 0 ? version : "unknown";
}

std::string gibibytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> build_info() {
  const dnnl_version_t* dnnl = dnnl_version();
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
  return {
      {"version", ANYSLOT_VERSION},
      {"compiler", fmt::format("{} {}", ANYSLOT_COMPILER, __VERSION__)},
      {"instruction sets", instruction_sets()},
      {"kernels", kernels_in_use()},
      {"GPU", gpu_in_use()},
      {"threads", fmt::format("{}", default_num_threads())},
      {"memory", gibibytes(memory)},
      {"memory available", gibibytes(available_memory_bytes())},
      {"oneDNN", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
      {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"PCRE2", pcre2_version()},
      {"utf8proc", utf8proc_version()},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
  };
}

}  // namespace anyslot

#include "anyslot/build_info.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include "backend/cpu/cpu_features.h"
#include "base/thread_pool.h"

namespace anyslot {

std::vector<std::pair<std::string, std::string>> build_info() {
  const dnnl_version_t* dnnl = dnnl_version();
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {
      {"version", ANYSLOT_VERSION},
      {"compiler", fmt::format("{} {}", ANYSLOT_COMPILER, __VERSION__)},
      {"threads", fmt::format("{}", num_physical_cores())},
      {"memory", fmt::format("{:.1f} GiB", memory / (1 << 30))},
      {"oneDNN", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
      {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
  };
}

}  // namespace anyslot

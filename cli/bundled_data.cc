#include "bundled_data.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

namespace anyslot::cli {

namespace fs = std::filesystem;

Expected<BundledData> find_bundled_data() {
  std::vector<fs::path> roots;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) roots.push_back(program.parent_path().parent_path() / "share" / "anyslot");
  roots.emplace_back(ANYSLOT_DATA_DIR);
  std::string places;
  for (const fs::path& root : roots) {
    BundledData data{(root / "models" / "rag-demo-14m").string(),
                     (root / "models" / "demo" / "questions.jsonl").string()};
    if (fs::is_directory(data.model, error) && fs::exists(data.questions, error)) return data;
    places += (places.empty() ? "" : " and ") + (root / "models").string();
  }
  return not_found(
      fmt::format("the bundled model rag-demo-14m is in neither of {}; reinstall with `cmake "
                  "--install build`, or "
                  "run the program from its source tree",
                  places));
}

}  // namespace anyslot::cli

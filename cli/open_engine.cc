#include "open_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "output_file.h"

namespace anyslot::cli {

void warn_unless_block_trained(const ModelInfo& model, Method method) {
  const bool documents_alone =
      method == Method::kLazy || method == Method::kBlock || method == Method::kMepic;
  if (!documents_alone || model.block_trained) return;
  (void)write_all(
      STDERR_FILENO,
      fmt::format("anyslot: warning: model {} is not marked as trained with block "
                  "attention (block_trained in rag_template.json); answers of method {} "
                  "may suffer\n",
                  model.name, method_name(method)),
      "standard error")
      .ok();
}

Status check_model_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status) || std::filesystem::is_regular_file(status)) return {};
  return invalid_argument(fmt::format("there is no folder or GGUF file \"{}\"", path));
}

Status check_model_option(const std::string& path) {
  const Status status = check_model_path(path);
  return status.ok() ? status : invalid_argument("--model: " + status.message());
}

Status check_control(const EngineConfig& config, Method method) {
  if (!config.ignore_placement_angles || method == Method::kLazy) return {};
  return invalid_argument(
      fmt::format("--ignore-placement-angles is a control for method lazy, it would change nothing "
                  "under method {}; leave it out or use method lazy",
                  method_name(method)));
}

Expected<Engine> open_engine(const EngineConfig& config, Interrupt& interrupt) {
  if (config.method) {
    Status status = check_control(config, *config.method);
    if (!status.ok()) return status;
  }
  Expected<Engine> engine = Engine::open(config);
  if (!engine) return engine;
  interrupt.at_end(engine->trace_finisher());
  Status status = check_control(config, engine->model().default_method);
  if (!status.ok()) return status;
  warn_unless_block_trained(engine->model(), engine->model().default_method);
  return engine;
}

}  // namespace anyslot::cli

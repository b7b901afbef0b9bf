#pragma once

#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "interrupt.h"

namespace anyslot::cli {

/// Opens an engine and warns on standard error when documents will be encoded alone by a model that
/// was not trained for it. Its trace is completed before the program ends. Fails as Engine::open
/// and check_control do.
Expected<Engine> open_engine(const EngineConfig& config, Interrupt& interrupt);

/// Fails with kInvalidArgument when a path names no folder or file.
Status check_model_path(const std::string& path);
/// The same for a value of --model that is known to be a path only once all options are read.
Status check_model_option(const std::string& path);

/// Fails with kInvalidArgument when --ignore-placement-angles would change nothing under `method`.
Status check_control(const EngineConfig& config, Method method);

/// The same warning for a method that single requests ask for; at most one line.
void warn_unless_block_trained(const ModelInfo& model, Method method);

}  // namespace anyslot::cli

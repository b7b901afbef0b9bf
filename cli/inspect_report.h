#pragma once

#include <string>

#include "anyslot/inspect.h"

namespace anyslot::cli {

/// A report for people: tables, and a line for each problem.
std::string inspect_text(const ModelReport& report, const InspectOptions& options);
/// The same as one JSON object, in one line.
std::string inspect_json(const ModelReport& report, const InspectOptions& options);

}  // namespace anyslot::cli

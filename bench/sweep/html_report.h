#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace anyslot::bench {

/// A sweep's report as one page that needs nothing else: its figures, each with charts and the
/// table they were drawn from, and the report itself as JSON in the element #report.
///
/// report: {"title", "summary", "ranking": null or {"columns", "rows"}, "command", "facts": {name:
/// text}, "figures": [{"id", "title", "text", "x": {"field", "label", "log"}, "charts": [{"field",
/// "label", "log"}], "columns": [{"field", "label"}], "rows": [{"series", field: number or text or
/// null}]}]}. A chart has a line per value of "series".
std::string html_report(const nlohmann::ordered_json& report);

}  // namespace anyslot::bench

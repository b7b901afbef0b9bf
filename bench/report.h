#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "anyslot/status.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"

namespace anyslot::bench {

/// A column of a report: its name in JSON and CSV, and its heading in the table. Columns without a
/// heading stand only in the files.
struct Column {
  std::string name;
  std::string heading;  // flush right when it begins with '>'
  int decimals = 0;     // of numbers with fractions in the table
};

/// What a benchmark found: facts about the run, and a row per measurement.
class Report {
 public:
  using Facts = std::vector<std::pair<std::string, std::string>>;
  using Row = std::vector<nlohmann::ordered_json>;

  Report(std::string benchmark, Facts facts, std::vector<Column> columns);

  /// A cell per column: numbers, strings, null (shown as "-"), or lists, which stand in JSON only.
  void add_row(Row cells);
  const std::vector<Row>& rows() const { return rows_; }

  /// A line "name: value" per fact.
  std::string facts_text() const;
  std::string table_text() const;
  /// {"benchmark", "facts": {...}, "results": [{column: cell}]}
  std::string json_text() const;
  /// A head line and a line per row; the facts are left out.
  std::string csv_text() const;

 private:
  std::string benchmark_;
  Facts facts_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// Where a report goes beside standard output; empty: nowhere.
struct ReportPaths {
  std::string json;
  std::string csv;
};

/// Adds --json FILE and --csv FILE.
void add_report_options(CLI::App& command, ReportPaths& paths);

/// The files of a report, opened before the work so that it is not done in vain.
class ReportFiles {
 public:
  /// Fails with kInvalidArgument, naming the path, when one cannot be written.
  static Expected<ReportFiles> open(const ReportPaths& paths, cli::Interrupt& interrupt);
  Status write(const Report& report);

 private:
  std::optional<cli::OutputFile> json_;
  std::optional<cli::OutputFile> csv_;
};

}  // namespace anyslot::bench

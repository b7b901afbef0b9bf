#include "report.h"

#include <fmt/format.h>

#include "cli/table.h"

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string table_cell(const Json& cell, int decimals) {
  if (cell.is_null()) return "-";
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_number_float()) return fmt::format("{:.{}f}", cell.get<double>(), decimals);
  return cell.dump();
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_cell(const Json& cell) {
  if (cell.is_null()) return "";
  return csv_field(cell.is_string() ? cell.get<std::string>() : cell.dump());
}

/// Columns of lists have no place in CSV.
bool is_list(const std::vector<Report::Row>& rows, size_t column) {
  return !rows.empty() && rows.front()[column].is_array();
}

Status write_file(std::optional<cli::OutputFile>& file, const std::string& text) {
  if (!file) return {};
  if (Status status = file->write(text); !status.ok()) return status;
  return file->commit();
}

Status open_file(const std::string& path, cli::Interrupt& interrupt,
                 std::optional<cli::OutputFile>& file) {
  if (path.empty()) return {};
  Expected<cli::OutputFile> opened = cli::OutputFile::open(path, interrupt);
  if (!opened) return opened.status();
  file.emplace(std::move(*opened));
  return {};
}

}  // namespace

Report::Report(std::string benchmark, Facts facts, std::vector<Column> columns)
    : benchmark_(std::move(benchmark)), facts_(std::move(facts)), columns_(std::move(columns)) {}

void Report::add_row(Row cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Report::facts_text() const {
  std::string text;
  for (const auto& [name, value] : facts_) text += fmt::format("{}: {}\n", name, value);
  return text;
}

std::string Report::table_text() const {
  std::vector<std::string> headings;
  for (const Column& column : columns_) {
    if (!column.heading.empty()) headings.push_back(column.heading);
  }
  cli::Table table(headings);
  for (const Row& row : rows_) {
    std::vector<std::string> cells;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!columns_[c].heading.empty()) cells.push_back(table_cell(row[c], columns_[c].decimals));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string Report::json_text() const {
  Json facts = Json::object();
  for (const auto& [name, value] : facts_) facts[name] = value;
  Json results = Json::array();
  for (const Row& row : rows_) {
    Json result = Json::object();
    for (size_t c = 0; c < columns_.size(); ++c) result[columns_[c].name] = row[c];
    results.push_back(std::move(result));
  }
  const Json report = {{"benchmark", benchmark_}, {"facts", facts}, {"results", results}};
  return report.dump(2) + "\n";
}

std::string Report::csv_text() const {
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string separator;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (is_list(rows_, c)) continue;
      text += separator + cell_of(c);
      separator = ",";
    }
    text += "\n";
  };
  add_line([&](size_t c) { return csv_field(columns_[c].name); });
  for (const Row& row : rows_) add_line([&](size_t c) { return csv_cell(row[c]); });
  return text;
}

void add_report_options(CLI::App& command, ReportPaths& paths) {
  command.add_option("--json", paths.json, "write facts and results as JSON")->type_name("FILE");
  command.add_option("--csv", paths.csv, "write the results as CSV")->type_name("FILE");
}

Expected<ReportFiles> ReportFiles::open(const ReportPaths& paths, cli::Interrupt& interrupt) {
  ReportFiles files;
  if (Status status = open_file(paths.json, interrupt, files.json_); !status.ok()) return status;
  if (Status status = open_file(paths.csv, interrupt, files.csv_); !status.ok()) return status;
  return files;
}

Status ReportFiles::write(const Report& report) {
  if (Status status = write_file(json_, report.json_text()); !status.ok()) return status;
  return write_file(csv_, report.csv_text());
}

}  // namespace anyslot::bench

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "input_rows.h"

namespace anyslot::cli {

/// One answer and whether a right one stands in it; unknown for a row without answers.
struct WayAnswer {
  std::string text;
  std::optional<bool> found;
};

/// The answers to one row.
struct ThreeWays {
  WayAnswer inlined;    // documents as part of one text
  WayAnswer documents;  // documents as documents
  WayAnswer reordered;  // in another order
};

/// Answers a row with documents in all three ways, under the row's or the engine's method.
Expected<ThreeWays> answer_three_ways(Engine& engine, const InputRow& row,
                                      const SamplingParams& sampling);

/// The last document first; a single document stays.
std::vector<Document> reordered_documents(const std::vector<Document>& documents);

/// All segments as one text segment, the template's ranges moved along. Only for segments given as
/// text.
Segment inlined_segment(const std::vector<Segment>& segments);

}  // namespace anyslot::cli

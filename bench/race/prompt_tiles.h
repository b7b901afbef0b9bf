#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "race_result.h"

namespace anyslot::bench {

struct Rgb {
  int red = 0;  // each from 0 to 255
  int green = 0;
  int blue = 0;
};

/// A light colour on which black can be read. Steps of the golden angle: however many documents
/// there are, neighbours differ.
Rgb document_colour(size_t number);

/// A part of a prompt as it is drawn.
struct PromptTile {
  std::string label;                    // a document's letter, "Q": the question and the template
  std::optional<size_t> document = {};  // its number, or that of the first of several
  int64_t tokens = 0;
  int64_t cached = 0;
};

/// The parts of a run's prompt in their order, at most `max_tiles` for the documents: beyond that
/// neighbours share one, without a label. What the server does not tell is missing.
std::vector<PromptTile> prompt_tiles(const RaceRun& run, size_t max_tiles);

/// The sum of their tokens.
int64_t tile_tokens(const std::vector<PromptTile>& tiles);

}  // namespace anyslot::bench

#include "prompt_tiles.h"

#include <algorithm>
#include <cmath>

namespace anyslot::bench {

Rgb document_colour(size_t number) {
  constexpr double kFirstHue = 25;  // degrees
  constexpr double kGoldenAngle = 137.508;
  constexpr double kSaturation = 0.62;
  constexpr double kLightness = 0.78;
  const double hue = std::fmod(kFirstHue + static_cast<double>(number) * kGoldenAngle, 360);
  // From hue, saturation and lightness, by CSS Color 3, section 4.2.4.
  constexpr double kReach = kSaturation * (kLightness < 0.5 ? kLightness : 1 - kLightness);
  const auto channel = [hue](double n) {
    const double k = std::fmod(n + hue / 30, 12);
    const double value = kLightness - kReach * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(255 * value));
  };
  return {channel(0), channel(8), channel(4)};
}

std::vector<PromptTile> prompt_tiles(const RaceRun& run, size_t max_tiles) {
  std::vector<PromptTile> tiles;
  const size_t count = run.documents.size();
  const size_t per_tile = std::max<size_t>(1, (count + max_tiles - 1) / max_tiles);
  for (size_t begin = 0; begin < count; begin += per_tile) {
    PromptTile tile;
    tile.document = run.documents[begin].number;
    if (per_tile == 1) tile.label = letter_of(*tile.document);
    for (size_t i = begin; i < std::min(begin + per_tile, count); ++i) {
      tile.tokens += run.documents[i].tokens;
      tile.cached += run.documents[i].cached;
    }
    tiles.push_back(std::move(tile));
  }
  PromptTile rest;
  rest.label = count > 0 ? "Q" : "";
  rest.tokens = run.prompt_tokens - run.document_tokens();
  rest.cached = run.cached_tokens.value_or(0) - run.cached_document_tokens();
  if (rest.tokens > 0) tiles.push_back(std::move(rest));
  return tiles;
}

int64_t tile_tokens(const std::vector<PromptTile>& tiles) {
  int64_t tokens = 0;
  for (const PromptTile& tile : tiles) tokens += tile.tokens;
  return tokens;
}

}  // namespace anyslot::bench

#pragma once

#include <string>

#include "race_result.h"

namespace anyslot::bench {

/// A race as an animated picture (SVG, without scripts or anything from elsewhere) that repeats:
/// the lanes replayed side by side by one scale, then the verdict. Who asks for little motion sees
/// the end. Under 60 kB whatever the race: long texts are cut, many documents share tiles, many
/// pieces of an answer come together.
std::string race_picture(const Race& race);

}  // namespace anyslot::bench

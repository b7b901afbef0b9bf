#include <array>
#include <string_view>

#include "random.h"
#include "workload_parts.h"

namespace anyslot::bench {

namespace {

constexpr uint64_t kSampleStream = 7;

/// Common words, most of them one token of most vocabularies.
constexpr auto kWords = std::to_array<std::string_view>(
    {"water",    "city",   "river",    "house",  "paper",    "green",  "light",  "story",
     "music",    "street", "north",    "south",  "market",   "winter", "summer", "letter",
     "number",   "family", "school",   "garden", "window",   "bridge", "island", "animal",
     "doctor",   "friend", "engine",   "method", "memory",   "record", "report", "result",
     "reason",   "region", "season",   "second", "simple",   "single", "square", "stone",
     "sugar",    "table",  "time",     "town",   "train",    "travel", "tree",   "village",
     "voice",    "wall",   "war",      "week",   "west",     "wheel",  "white",  "wide",
     "wild",     "wind",   "wine",     "wood",   "word",     "work",   "world",  "year",
     "young",    "art",    "bank",     "base",   "bird",     "black",  "blood",  "blue",
     "board",    "body",   "book",     "bread",  "brother",  "build",  "call",   "camp",
     "case",     "cause",  "cell",     "center", "change",   "child",  "church", "class",
     "clear",    "coast",  "cold",     "color",  "common",   "copy",   "corn",   "cost",
     "court",    "cross",  "crown",    "day",    "deep",     "desert", "door",   "dream",
     "dress",    "drive",  "earth",    "east",   "edge",     "energy", "event",  "eye",
     "face",     "fact",   "farm",     "father", "field",    "figure", "film",   "fire",
     "fish",     "floor",  "flower",   "food",   "force",    "forest", "form",   "free",
     "fruit",    "game",   "glass",    "gold",   "good",     "ground", "group",  "hand",
     "head",     "heart",  "heat",     "heavy",  "high",     "hill",   "horse",  "hour",
     "human",    "ice",    "idea",     "iron",   "key",      "king",   "lake",   "land",
     "language", "law",    "leaf",     "level",  "life",     "line",   "long",   "machine",
     "man",      "map",    "mark",     "mass",   "milk",     "mind",   "minute", "money",
     "month",    "moon",   "morning",  "mother", "mountain", "mouth",  "name",   "nature",
     "new",      "night",  "ocean",    "office", "oil",      "open",   "order",  "page",
     "paint",    "part",   "party",    "past",   "path",     "peace",  "people", "place",
     "plain",    "plan",   "plant",    "point",  "port",     "power",  "press",  "price",
     "prince",   "queen",  "question", "rain",   "red",      "rest",   "rice",   "road",
     "rock",     "room",   "rule",     "salt",   "sand",     "sea",    "ship",   "side",
     "silver",   "sky",    "sleep",    "snow",   "soldier",  "song",   "sound",  "space",
     "spring"});

}  // namespace

std::string random_words(int64_t count, RandomStream& random) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[random.below(kWords.size())];
  }
  return text;
}

std::string workload_words(size_t count, uint64_t seed) {
  RandomStream random(seed, kSampleStream);
  return random_words(static_cast<int64_t>(count), random);
}

}  // namespace anyslot::bench

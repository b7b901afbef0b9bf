#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/serve/workload.h"

namespace anyslot::bench {

/// What is asked in a race. A document's number is its place in `documents`; its letter and its
/// colour follow it into whatever slot it stands.
struct RacePlan {
  std::string question;
  std::vector<std::string> answers;         // right ones; empty: unknown
  std::vector<WorkloadDocument> documents;  // in their old order
  std::vector<size_t> order;                // numbers of the documents in the order of the race
  int max_tokens = 64;
  uint64_t seed = 0;  // of the order
  bool cold = false;  // else each lane first reads the documents in their old order
};

/// What a lane's cache can do, as far as that is known.
enum class LaneReuse : uint8_t {
  kDocuments,  // a document's copy fits any slot
  kPrefix,     // only what begins like an earlier prompt
  kNothing,
  kUnknown
};

/// A piece of an answer as it came.
struct RacePiece {
  double at_ms = 0;  // since the request was sent
  std::string text;
};

/// How much of a document a lane had in its cache.
struct RunDocument {
  size_t number = 0;
  int64_t tokens = 0;
  int64_t cached = 0;
};

/// What was measured of one lane.
struct RaceRun {
  std::string name;
  std::string note;
  LaneReuse reuse = LaneReuse::kUnknown;
  std::optional<double> first_token_ms;  // none: an answer without a token
  double total_ms = 0;                   // to the last token
  std::vector<RacePiece> pieces;         // those with text
  int64_t prompt_tokens = 0;             // 0: the server does not tell
  std::optional<int64_t> cached_tokens;  // of the prompt; none: the server does not tell
  std::vector<RunDocument> documents;    // in prompt order; empty: the server does not tell

  std::string answer() const;
  int64_t document_tokens() const;
  int64_t cached_document_tokens() const;
};

struct Race {
  RacePlan plan;
  std::string model;  // and where it runs, for people
  std::vector<RaceRun> runs;
};

/// "A" to "Z", then "AA" and so on.
std::string letter_of(size_t number);

}  // namespace anyslot::bench

#pragma once

#include <string>

#include "race_result.h"

namespace anyslot::bench {

/// A race of lazy, which had all documents in its cache, against prefix, which had the first.
inline Race sample_race() {
  Race race;
  race.plan.question = "Which river flows through Nelwick?";
  race.plan.answers = {"Chemi"};
  race.plan.seed = 17;
  for (const char* title : {"Nelwick", "Garsiham", "Valford"}) {
    race.plan.documents.push_back({title, std::string(title) + " is a city.", "", {}});
  }
  race.plan.order = {2, 0, 1};
  race.model = "a model.";
  RaceRun lazy;
  lazy.name = "lazy";
  lazy.note = "one copy";
  lazy.reuse = LaneReuse::kDocuments;
  lazy.first_token_ms = 20;
  lazy.total_ms = 30;
  lazy.pieces = {{20, "Che"}, {30, "mi"}};
  lazy.prompt_tokens = 100;
  lazy.cached_tokens = 80;
  lazy.documents = {{2, 30, 30}, {0, 20, 20}, {1, 30, 30}};
  RaceRun prefix = lazy;
  prefix.name = "prefix";
  prefix.note = "equal beginnings";
  prefix.reuse = LaneReuse::kPrefix;
  prefix.first_token_ms = 90;
  prefix.total_ms = 100;
  prefix.pieces = {{90, "Che"}, {100, "mi"}};
  prefix.cached_tokens = 30;
  prefix.documents = {{2, 30, 30}, {0, 20, 0}, {1, 30, 0}};
  race.runs = {lazy, prefix};
  return race;
}

/// The same with texts that would act on a terminal or in a picture, of every kind that can.
inline Race hostile_race() {
  Race race = sample_race();
  race.plan.question = "a\x1b[2J\"<script>alert(1)</script>& \xC2\x9B ]]>\xEF\xBF\xBE";
  race.plan.answers.clear();
  race.model = "<model>\r\n.";
  for (RaceRun& run : race.runs) {
    run.reuse = LaneReuse::kUnknown;
    run.name = "<b>\x1b]0;title\x07";
    run.note = "\xE2\x80\xAE<i>";
    run.pieces[1].text = "\x1b[31m</text><a href='x'>\n\x08\xEF\xBF\xBF";
  }
  return race;
}

/// Of more documents, pieces and letters than anything can show one by one.
inline Race large_race() {
  constexpr size_t kDocuments = 1000;
  constexpr size_t kPieces = 3000;
  Race race = sample_race();
  race.plan.question = std::string(5000, 'W');
  race.plan.documents.resize(kDocuments);
  race.plan.order.clear();
  for (size_t i = 0; i < kDocuments; ++i) race.plan.order.push_back(kDocuments - 1 - i);
  for (RaceRun& run : race.runs) {
    run.name = std::string(300, 'n');
    run.note = std::string(300, 'm');
    run.pieces.clear();
    run.documents.clear();
    for (size_t i = 0; i < kPieces; ++i) {
      run.pieces.push_back({*run.first_token_ms + static_cast<double>(i), "word<& "});
    }
    run.total_ms = run.pieces.back().at_ms;
    for (const size_t number : race.plan.order) {
      run.documents.push_back({number, 20, number % 3 == 0 ? 0 : 20});
    }
    run.cached_tokens = run.cached_document_tokens();
    run.prompt_tokens = run.document_tokens() + 20;
  }
  return race;
}

}  // namespace anyslot::bench

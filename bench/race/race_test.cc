#include "race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "replay.h"

namespace anyslot::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<cli::InputRow> rows(size_t documents = 6) {
  cli::InputRow row;
  row.line = 1;
  row.question = "which?";
  for (size_t i = 0; i < documents; ++i) row.documents.push_back({letter_of(i), "text", ""});
  cli::InputRow segments;
  segments.line = 2;
  segments.segments.emplace_back();
  return {row, segments};
}

TEST(PlanRace, PutsTheDocumentsIntoANewOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto plan = plan_race(rows(), "file", {.seed = seed});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->documents.size(), 6U);
    EXPECT_THAT(plan->order, UnorderedElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_FALSE(std::ranges::is_sorted(plan->order)) << seed;
    EXPECT_EQ(plan->order, plan_race(rows(), "file", {.seed = seed})->order);
    EXPECT_THAT(plan_race(rows(2), "file", {.seed = seed})->order, ElementsAre(1, 0));
    EXPECT_THAT(plan_race(rows(1), "file", {.seed = seed})->order, ElementsAre(0));
  }
  EXPECT_NE(plan_race(rows(), "file", {.seed = 1})->order,
            plan_race(rows(), "file", {.seed = 2})->order);
}

TEST(PlanRace, TakesWhatIsChosen) {
  EXPECT_EQ(plan_race(rows(), "file", {})->max_tokens, 64);
  std::vector<cli::InputRow> limited = rows();
  limited[0].max_tokens = 9;
  EXPECT_EQ(plan_race(limited, "file", {})->max_tokens, 9);
  const auto plan = plan_race(limited, "file", {.num_documents = 3, .max_tokens = 5});
  EXPECT_EQ(plan->max_tokens, 5);
  EXPECT_THAT(plan->order, UnorderedElementsAre(0, 1, 2));
}

TEST(PlanRace, NamesWhatIsNotThere) {
  const auto error = [](const RaceChoice& choice) {
    return plan_race(rows(), "file", choice).status().message();
  };
  EXPECT_THAT(error({.index = 3}), HasSubstr("file has 2 rows"));
  EXPECT_THAT(error({.index = 2}), HasSubstr("file:2: a row of segments"));
  EXPECT_THAT(error({.num_documents = 7}), HasSubstr("the row has 6"));
}

/// Answers with these events, whatever is asked; nothing ever comes without any.
class ScriptedTarget : public Target {
 public:
  explicit ScriptedTarget(std::vector<TargetEvent> events) : events_(std::move(events)) {}

  std::string model_id() const override { return "scripted"; }
  Report::Facts facts() const override { return {}; }
  Expected<TextTraits> text_traits() override { return TextTraits(); }
  TargetCounters counters() override { return {}; }
  void watch_kv(boost::asio::io_context& /*loop*/) override {}
  std::optional<PeakKv> peak_kv() override { return {}; }

  std::unique_ptr<Flight> start(boost::asio::io_context& loop, const WorkloadRequest& request,
                                Handler handler) override {
    asked.push_back(request);
    const Clock::time_point now = Clock::now();
    for (TargetEvent event : events_) {
      event.at = now + event.at.time_since_epoch();
      boost::asio::post(loop, [handler, event] { handler(event); });
    }
    return nullptr;
  }

  std::vector<WorkloadRequest> asked;

 private:
  std::vector<TargetEvent> events_;
};

TargetEvent piece(int ms, const std::string& text) {
  TargetEvent event;
  event.at = Clock::time_point(std::chrono::milliseconds(ms));
  event.is_output = true;
  event.text = text;
  return event;
}

TargetEvent end_of(std::vector<int64_t> cached) {
  TargetEvent event;
  event.at = Clock::time_point(std::chrono::milliseconds(900));
  event.last = true;
  event.prompt_tokens = 100;
  event.cached_tokens = 33;
  for (const int64_t tokens : cached) {
    event.documents.push_back({static_cast<int>(event.documents.size()), "", 10, tokens});
  }
  return event;
}

Lane lane_of(const std::string& name, std::vector<TargetEvent> events) {
  Lane lane;
  lane.name = name;
  lane.target = std::make_unique<ScriptedTarget>(std::move(events));
  return lane;
}

struct Staged {
  std::vector<std::string> stages;
  Expected<std::vector<RaceRun>> runs = internal_error("");
};

Staged run_lanes(const RacePlan& plan, const std::vector<Lane>& lanes, double timeout = 30) {
  Staged staged;
  staged.runs = run_race(plan, lanes, timeout, [&](RaceStage stage, const Lane& lane) {
    staged.stages.push_back((stage == RaceStage::kRunning ? "run " : "read ") + lane.name);
  });
  return staged;
}

TEST(RunRace, MeasuresOneLaneAfterTheOther) {
  const RacePlan plan = *plan_race(rows(3), "file", {.max_tokens = 7});
  std::vector<Lane> lanes;
  lanes.push_back(
      lane_of("x", {piece(40, ""), piece(50, "one "), piece(70, "two"), end_of({1, 2, 3})}));
  lanes.push_back(lane_of("y", {end_of({})}));
  const Staged staged = run_lanes(plan, lanes);
  EXPECT_THAT(staged.stages, ElementsAre("read x", "read y", "run x", "run y"));
  ASSERT_TRUE(staged.runs.ok());
  const RaceRun& run = staged.runs->front();
  ASSERT_TRUE(run.first_token_ms.has_value());
  EXPECT_GE(*run.first_token_ms, 40);
  EXPECT_NEAR(run.total_ms - *run.first_token_ms, 30, 1e-6);
  EXPECT_EQ(run.answer(), "one two");
  ASSERT_EQ(run.pieces.size(), 2U);
  EXPECT_NEAR(run.pieces[0].at_ms - *run.first_token_ms, 10, 1e-6);
  EXPECT_EQ(run.cached_tokens, 33);
  ASSERT_EQ(run.documents.size(), 3U);
  for (size_t slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(run.documents[slot].number, plan.order[slot]);
    EXPECT_EQ(run.documents[slot].cached, static_cast<int64_t>(slot) + 1);
  }
  EXPECT_EQ(run.document_tokens(), 30);
  EXPECT_EQ(run.cached_document_tokens(), 6);
  const RaceRun& empty = staged.runs->back();
  EXPECT_FALSE(empty.first_token_ms.has_value());
  EXPECT_GE(empty.total_ms, 900);
  EXPECT_TRUE(empty.documents.empty());

  const auto& asked = dynamic_cast<ScriptedTarget&>(*lanes[0].target).asked;
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].max_tokens, 1);
  EXPECT_EQ(asked[1].max_tokens, 7);
  for (size_t slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(asked[0].documents[slot].title, letter_of(slot));
    EXPECT_EQ(asked[1].documents[slot].title, letter_of(plan.order[slot]));
  }
}

TEST(RunRace, ReadsNothingBeforeAColdOne) {
  std::vector<Lane> lanes;
  lanes.push_back(lane_of("x", {end_of({})}));
  lanes.push_back(lane_of("y", {end_of({})}));
  const Staged staged = run_lanes(*plan_race(rows(), "file", {.cold = true}), lanes);
  EXPECT_THAT(staged.stages, ElementsAre("run x", "run y"));
}

TEST(RunRace, NamesTheLaneThatFails) {
  TargetEvent broken = end_of({});
  broken.failure = Failure::kRefused;
  broken.error = "no room";
  std::vector<Lane> lanes;
  lanes.push_back(lane_of("x", {end_of({})}));
  lanes.push_back(lane_of("y", {broken}));
  EXPECT_EQ(run_lanes(*plan_race(rows(), "file", {}), lanes).runs.status().message(), "y: no room");
  lanes[1] = lane_of("y", {});
  const Status stalled = run_lanes(*plan_race(rows(), "file", {}), lanes, 0.01).runs.status();
  EXPECT_EQ(stalled.code(), StatusCode::kUnavailable);
  EXPECT_THAT(stalled.message(), HasSubstr("y: nothing came for 0.01 s"));
}

TEST(Replay, GoesAtARoundPaceThatCanBeWatched) {
  EXPECT_EQ(replay_scale(3000), 1);
  EXPECT_EQ(scale_text(1), "at real speed");
  EXPECT_EQ(replay_scale(100), 50);
  EXPECT_EQ(scale_text(50), "50 times slower than measured");
  EXPECT_EQ(replay_scale(60'000), 0.2);
  EXPECT_EQ(scale_text(0.2), "5 times faster than measured");
  EXPECT_EQ(replay_scale(0), 1000);
  EXPECT_THAT(axis_ticks(100), ElementsAre(0, 50, 100));
  EXPECT_THAT(axis_ticks(0), ElementsAre(0));
}

TEST(Replay, ShowsWhatHadComeByThen) {
  RaceRun run;
  run.first_token_ms = 20;
  run.total_ms = 50;
  run.pieces = {{20, "a"}, {40, "b"}};
  EXPECT_FALSE(state_at(run, 19).begun);
  EXPECT_EQ(state_at(run, 19).waited_ms, 19);
  EXPECT_EQ(state_at(run, 19).pieces, 0U);
  EXPECT_TRUE(state_at(run, 30).begun);
  EXPECT_EQ(state_at(run, 30).answered_ms, 10);
  EXPECT_EQ(state_at(run, 30).pieces, 1U);
  EXPECT_FALSE(state_at(run, 30).ended);
  EXPECT_EQ(state_at(run, 99).answered_ms, 30);
  EXPECT_TRUE(state_at(run, 99).ended);
}

TEST(Letters, GoOnPastZ) {
  EXPECT_EQ(letter_of(0), "A");
  EXPECT_EQ(letter_of(25), "Z");
  EXPECT_EQ(letter_of(26), "AA");
  EXPECT_EQ(letter_of(26 + 26 * 26), "AAA");
}

}  // namespace
}  // namespace anyslot::bench

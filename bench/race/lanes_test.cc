#include "lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/serve/test_other_servers.h"
#include "support/temporary_folder.h"

namespace anyslot::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Two fakes of servers that others wrote.
class TwoServers : public ::testing::Test {
 protected:
  LaneOptions options() const {
    LaneOptions options;
    options.a = vllm_server_.url();
    options.b = llama_server_.url() + "/v1";
    return options;
  }

  cli::Interrupt interrupt_;
  std::unique_ptr<OtherServer> vllm_ = other_server_vllm();
  std::unique_ptr<OtherServer> llama_ = other_server_llama_cpp(LlamaCppBuild::k2026);
  FakeServer vllm_server_{[this](const FakeRequest& request) { return vllm_->answer(request); }};
  FakeServer llama_server_{[this](const FakeRequest& request) { return llama_->answer(request); }};
};

TEST_F(TwoServers, GetTheDocumentsInThePrompt) {
  const auto open = open_lanes(options(), interrupt_);
  ASSERT_TRUE(open.ok()) << open.status().message();
  ASSERT_EQ(open->lanes.size(), 2U);
  EXPECT_THAT(open->lanes[0].note, HasSubstr("vllm, documents in the prompt"));
  EXPECT_THAT(open->lanes[1].note, HasSubstr("llama.cpp, documents in the prompt"));
  RacePlan plan;
  plan.question = "why?";
  for (const char* title : {"X", "Y", "Z"}) {
    plan.documents.push_back({title, std::string(60, 'w') + " " + title, "", {}});
  }
  plan.order = {2, 1, 0};
  plan.max_tokens = 3;
  const auto runs = run_race(plan, open->lanes, 30, [](RaceStage, const Lane&) {});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  for (const RaceRun& run : *runs) {
    EXPECT_EQ(run.answer(), " word word word");
    EXPECT_GT(run.prompt_tokens, 0);
    EXPECT_TRUE(run.documents.empty());
  }
  for (const FakeServer* server : {&vllm_server_, &llama_server_}) {
    const std::vector<std::string> bodies = server->bodies();
    ASSERT_EQ(bodies.size(), 2U);
    const json body = json::parse(bodies.back());
    for (const char* field : {"documents", "method", "cache_salt"})
      EXPECT_FALSE(body.contains(field)) << field;
    const std::string prompt = body["messages"][0]["content"];
    EXPECT_LT(prompt.find("Title: Z"), prompt.find("Title: X"));
  }
}

TEST_F(TwoServers, HaveNoMethodsToChooseFrom) {
  LaneOptions one;
  one.url = vllm_server_.url();
  const Status status = open_lanes(one, interrupt_).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--a URL --b URL"));
}

TEST_F(TwoServers, NeedAKeyThatIsOne) {
  const testing_support::TemporaryFolder folder;
  LaneOptions with_key = options();
  with_key.api_key_file = folder.write("key", "secret\nignored\n");
  EXPECT_TRUE(open_lanes(with_key, interrupt_).ok());
  with_key.api_key_file = folder.write("blank", "\n");
  EXPECT_THAT(open_lanes(with_key, interrupt_).status().message(), HasSubstr("is no key"));
  with_key.api_key_file = folder.file("nothing");
  EXPECT_EQ(open_lanes(with_key, interrupt_).status().code(), StatusCode::kInvalidArgument);
}

TEST(Lanes, NeedAServerThatIsThere) {
  cli::Interrupt interrupt;
  LaneOptions options;
  options.url = "http://127.0.0.1:1";
  const Status status = open_lanes(options, interrupt).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.message();
  options.url = "ftp://x";
  EXPECT_EQ(open_lanes(options, interrupt).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace anyslot::bench

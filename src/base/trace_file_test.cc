#include "base/trace_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/temporary_folder.h"

namespace anyslot {
namespace {

using nlohmann::json;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

/// The events but those that name the process and its thread.
std::vector<json> events_of(const std::string& path) {
  std::vector<json> events;
  for (const json& event : json::parse(read_bytes(path))) {
    if (event.at("ph") == "X") events.push_back(event);
  }
  return events;
}

std::shared_ptr<TraceFile> create(const std::string& path) {
  auto file = TraceFile::create(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? *file : nullptr;
}

TraceEvent event_at(int64_t begin) {
  TraceEvent event;
  event.name = "work";
  event.begin = begin;
  event.end = begin + 5;
  return event;
}

TEST(TraceFile, WritesNestedSpansWithTheirArguments) {
  const TemporaryFolder folder;
  const auto file = create(folder.file("trace"));
  {
    TraceSpan outer(file.get(), "outer");
    { const TraceSpan inner(file.get(), "inner", {{"rows", 3}, {"layer", -1}}); }
    TraceSpan dropped(file.get(), "dropped");
    dropped.drop();
    outer.set({{"step", int64_t{1} << 60}});
  }
  ASSERT_TRUE(file->finish().ok());
  const std::vector<json> events = events_of(folder.file("trace"));
  ASSERT_EQ(events.size(), 2);
  const json& inner = events[0];
  const json& outer = events[1];
  EXPECT_EQ(inner.at("name"), "inner");
  EXPECT_EQ(inner.at("args"), json({{"rows", 3}, {"layer", -1}}));
  EXPECT_EQ(outer.at("name"), "outer");
  EXPECT_EQ(outer.at("args"), json({{"step", int64_t{1} << 60}}));
  const auto end = [](const json& e) { return e["ts"].get<double>() + e["dur"].get<double>(); };
  EXPECT_LE(outer["ts"], inner["ts"]);
  EXPECT_LE(end(inner), end(outer) + 1e-6);
}

TEST(TraceFile, CountsInMicroseconds) {
  const TemporaryFolder folder;
  const auto file = create(folder.file("trace"));
  file->add(event_at(1234007));
  ASSERT_TRUE(file->finish().ok());
  const std::vector<json> events = events_of(folder.file("trace"));
  ASSERT_EQ(events.size(), 1);
  EXPECT_DOUBLE_EQ(events[0].at("ts"), 1234.007);
  EXPECT_DOUBLE_EQ(events[0].at("dur"), 0.005);
}

TEST(TraceFile, KeepsEveryEventOfMoreThanItsMemoryHolds) {
  const TemporaryFolder folder;
  const auto file = create(folder.file("trace"));
  constexpr int64_t kEvents = 2 * TraceFile::kMaxPending + 3;
  for (int64_t i = 0; i < kEvents; ++i) file->add(event_at(i * 1000));
  ASSERT_TRUE(file->finish().ok());
  const std::vector<json> events = events_of(folder.file("trace"));
  ASSERT_EQ(events.size(), kEvents);
  for (int64_t i = 0; i < kEvents; ++i) ASSERT_EQ(events[i].at("ts"), i);
}

TEST(TraceFile, WritesOnlyWhatIsWorthIt) {
  const TemporaryFolder folder;
  const auto file = create(folder.file("trace"));
  for (int i = 0; i < 3; ++i) file->add(event_at(i));
  file->flush(4);
  EXPECT_EQ(read_bytes(folder.file("trace")), "");
  file->flush(3);
  const std::string written = read_bytes(folder.file("trace"));
  EXPECT_EQ(json::parse(written + "]").size(), 5) << "and two that name process and thread";
}

TEST(TraceFile, MayBeFinishedByAnotherThread) {
  const TemporaryFolder folder;
  const auto file = create(folder.file("trace"));
  for (int64_t i = 0; i < 1000; ++i) file->add(event_at(i));
  std::thread other([&] { EXPECT_TRUE(file->finish().ok()); });
  for (int64_t i = 0; i < 100000; ++i) file->add(event_at(i));
  other.join();
  file->add(event_at(0));
  EXPECT_TRUE(file->finish().ok()) << "a second time";
  EXPECT_GE(events_of(folder.file("trace")).size(), 1000);
}

TEST(TraceFile, RefusesWhatItCannotWrite) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder.path(), folder.file("missing/trace"), pipe}) {
    const auto file = TraceFile::create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(file.status().message().find(path), std::string::npos) << file.status().message();
  }
}

TEST(TraceFile, FailsOnceAndGoesOnWhenTheDiskIsFull) {
  const auto file = create("/dev/full");
  for (int64_t i = 0; i < 10; ++i) file->add(event_at(i));
  file->flush(0);
  file->add(event_at(10));
  const Status status = file->finish();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("/dev/full"), std::string::npos) << status.message();
}

TEST(TraceFile, IsWholeJsonUpToWhereTheDiskWasFull) {
  const TemporaryFolder folder;
  const auto file = create(folder.file("trace"));
  for (int64_t i = 0; i < 100; ++i) file->add(event_at(i));
  file->flush(0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{read_bytes(folder.file("trace")).size() + 100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int64_t i = 0; i < 100; ++i) file->add(event_at(i));
  EXPECT_FALSE(file->finish().ok());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(events_of(folder.file("trace")).size(), 100);
}

}  // namespace
}  // namespace anyslot

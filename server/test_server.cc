#include "test_server.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

namespace anyslot::server {

namespace {

Engine open(const EngineConfig& config) {
  auto engine = Engine::open(config);
  if (!engine.ok()) throw std::runtime_error(engine.status().message());
  return *std::move(engine);
}

std::unique_ptr<Server> create(Engine& engine, ServerOptions options) {
  options.port = 0;
  options.log_level = "off";
  auto server = Server::create(engine, options);
  if (!server.ok()) throw std::runtime_error(server.status().message());
  return *std::move(server);
}

}  // namespace

EngineConfig bundled_config() {
  EngineConfig config;
  config.model_path = ANYSLOT_MODEL_DIR;
  config.device = ANYSLOT_TEST_DEVICE;
  config.dtype = ComputeType::kFloat32;
  config.kv_cache_bytes = int64_t{64} << 20;
  config.num_threads = 2;
  return config;
}

TestServer::TestServer(const EngineConfig& config, ServerOptions options)
    : engine_(open(config)),
      server_(create(engine_, std::move(options))),
      thread_([this] { server_->run(); }) {}

TestServer::~TestServer() {
  server_->stop();
  join();
}

void TestServer::join() {
  if (thread_.joinable()) thread_.join();
}

nlohmann::json TestServer::long_answer(int max_tokens) const {
  return {{"model", model()}, {"prompt", "The river"}, {"max_tokens", max_tokens},
          {"temperature", 0}, {"ignore_eos", true},    {"stream", true}};
}

double TestServer::metric(const std::string& name) const {
  const std::string text = connect().get("/metrics").body;
  const size_t at = text.find("\n" + name + " ");
  if (at == std::string::npos) throw std::runtime_error("no metric " + name + " in " + text);
  return std::stod(text.substr(at + name.size() + 2));
}

void TestServer::expect_idle() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (true) {
    const Status sound = engine_.check_integrity();  // between two steps
    ASSERT_TRUE(sound.ok()) << sound.message();
    const Stats stats = engine_.stats();
    if (stats.running_requests + stats.waiting_requests + stats.referenced_entries == 0) return;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "requests are still there";
    std::this_thread::yield();
  }
}

}  // namespace anyslot::server

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "anyslot/engine.h"
#include "server.h"
#include "test_client.h"

namespace anyslot::server {

/// The bundled model, in float32 with a small pool.
EngineConfig bundled_config();

/// A server on a free port, with its engine, in a thread of its own.
class TestServer {
 public:
  explicit TestServer(const EngineConfig& config, ServerOptions options = {});
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  uint16_t port() const { return server_->port(); }
  TestClient connect() const { return TestClient(port()); }
  Engine& engine() { return engine_; }
  /// The name of the model that requests must give.
  const std::string& model() const { return server_->model_name(); }
  /// A streaming completion of so many tokens.
  nlohmann::json long_answer(int max_tokens) const;

  void stop() { server_->stop(); }
  /// After stop(): waits for the end of run().
  void join();

  /// The value of a line of /metrics, which begins with `name`.
  double metric(const std::string& name) const;
  /// Waits until nothing runs or waits, then expects a sound pool and no references.
  void expect_idle();

 private:
  Engine engine_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// Tests that share a server of the bundled model; Self: the fixture, whose server it is, and which
/// may have options of its own.
template <typename Self>
class SharedServerTest : public ::testing::Test {
 public:
  static ServerOptions options() { return {}; }

 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<TestServer>(bundled_config(), Self::options());
  }
  static void TearDownTestSuite() { server.reset(); }

  inline static std::unique_ptr<TestServer> server;
};

}  // namespace anyslot::server

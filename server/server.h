#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "anyslot/engine.h"
#include "anyslot/status.h"
#include "server_limits.h"

namespace anyslot::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;           // 0: a free one
  std::string served_model_name;  // empty: the name of the model's folder
  std::string api_key_file;       // empty: nobody needs a key
  /// Requests that the server takes at once: those beyond the engine's batch wait.
  size_t max_requests = 64 + 256;
  int default_chat_tokens = 1024;           // max_tokens of a chat request that does not say
  std::chrono::milliseconds grace{30'000};  // for running requests, when the server shuts down
  std::string log_level = "info";
  Limits limits;
};

/// Serves an engine over HTTP.
class Server {
 public:
  /// Listens; connections are accepted by run(). `engine` must outlive the server. Fails with
  /// kInvalidArgument for wrong options, and as reading the keys and listening do.
  static Expected<std::unique_ptr<Server>> create(Engine& engine, const ServerOptions& options);
  ~Server();

  uint16_t port() const;
  const std::string& model_name() const;

  /// Serves on the calling thread until stop(), and then until the requests that run have ended or
  /// the grace time is over.
  void run();
  /// Any thread, any number of times.
  void stop();

 private:
  class Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace anyslot::server

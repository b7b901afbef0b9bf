#include "server.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <utility>

#include "api_handler.h"
#include "api_keys.h"
#include "guarded_task.h"
#include "http_server.h"
#include "json_body.h"
#include "log.h"
#include "serving_context.h"

namespace anyslot::server {

namespace {

constexpr size_t kWorkers = 4;  // some of them wait for the engine
/// The end of the grace time, in which clients read the end of what was cut off.
std::chrono::milliseconds farewell_of(std::chrono::milliseconds grace) {
  return std::clamp<std::chrono::milliseconds>(grace / 4, std::chrono::milliseconds(200),
                                               std::chrono::milliseconds(2000));
}

Executor executor_of(const std::shared_ptr<asio::io_context>& io, const Logger& log) {
  return [io, log](Task task) { asio::post(*io, guarded(std::move(task), log)); };
}

std::string model_name_of(const Engine& engine, const ServerOptions& options) {
  return options.served_model_name.empty() ? engine.model().name : options.served_model_name;
}

bool is_utf8(const std::string& text) {
  // Serializing replaces what is none.
  return nlohmann::json::parse(to_text(text)) == text;
}

/// The name stands in answers, in logs and on the terminal, and clients must be able to give it.
Status check_model_name(const std::string& name) {
  if (!has_control_characters(name) && is_utf8(name)) return {};
  return invalid_argument("--served-model-name \"" + loggable(name) +
                          "\" holds control characters or is no UTF-8; use plain text on one line");
}

}  // namespace

/// Everything that serves, in the order in which it is made.
class Server::Parts {
 public:
  Parts(Engine& engine, const ServerOptions& options, ApiKeys keys, Logger logger)
      : io_(std::make_shared<asio::io_context>(1)),
        work_(asio::make_work_guard(*io_)),
        log_(std::move(logger)),
        grace_(options.grace),
        context_{engine,
                 {model_name_of(engine, options), options.limits.max_documents,
                  options.default_chat_tokens},
                 options.limits,
                 executor_of(io_, log_),
                 [this](Task task) { asio::post(workers_, guarded(std::move(task), log_)); },
                 ActiveRequests(options.max_requests),
                 Metrics(engine),
                 unix_seconds()},
        keys_required_(keys.required()),
        handler_(context_, std::move(keys), log_),
        http_(io_, handler_, context_.limits, log_),
        cut_off_timer_(*io_),
        end_timer_(*io_),
        workers_(kWorkers) {}

  ~Parts() {
    workers_.join();
    drain_io();
  }

  Status listen(const std::string& host, uint16_t port) {
    Status status = http_.listen(host, port);
    if (status.ok() && http_.on_loopback() && !keys_required_) {
      handler_.restrict_hosts(OwnHosts(host));
    }
    return status;
  }
  uint16_t port() const { return http_.port(); }
  const std::string& model_name() const { return context_.rules.model; }

  /// Connections and tasks catch what is thrown for them; what is left concerns none.
  void run() {
    while (!io_->stopped()) {
      try {
        io_->run();
      } catch (const std::exception& error) {
        log_->error("the I/O thread goes on after: {}", error.what());
      }
    }
  }

  void stop() {
    asio::post(*io_, [this] { begin_shutdown(); });
  }

 private:
  void begin_shutdown() {
    if (std::exchange(stopping_, true)) return;
    log_->info("shutting down within {:g} s; requests that run: {}",
               std::chrono::duration<double>(grace_).count(), context_.active.size());
    // Whatever fails from here on, the end comes.
    const auto farewell = farewell_of(grace_);
    const auto cut_off = std::max(std::chrono::milliseconds(0), grace_ - farewell);
    at(cut_off_timer_, cut_off, [this] { cut_off_requests(); });
    at(end_timer_, cut_off + farewell, [this] { http_.close_all(); });
    handler_.drain();
    http_.shut_down([this] { end(); });
  }

  void cut_off_requests() {
    if (context_.active.size() > 0) {
      log_->warn("the grace time ends: {} requests are cut off", context_.active.size());
    }
    context_.active.cancel_all();
  }

  static void at(asio::steady_timer& timer, std::chrono::milliseconds time, Task task) {
    timer.expires_after(time);
    timer.async_wait([task = std::move(task)](const ErrorCode& cancelled) {
      if (!cancelled) task();
    });
  }

  void end() {
    cut_off_timer_.cancel();
    end_timer_.cancel();
    work_.reset();
    io_->stop();
  }

  /// What still waits to run holds connections, and those hold the context.
  void drain_io() {
    try {
      io_->restart();
      io_->poll();
    } catch (const std::exception& error) {
      log_->error("a task failed at the end: {}", error.what());
    }
  }

  std::shared_ptr<asio::io_context> io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Logger log_;
  std::chrono::milliseconds grace_;
  ServingContext context_;
  bool keys_required_;
  ApiHandler handler_;
  HttpServer http_;
  asio::steady_timer cut_off_timer_;
  asio::steady_timer end_timer_;
  asio::thread_pool workers_;
  bool stopping_ = false;
};

Expected<std::unique_ptr<Server>> Server::create(Engine& engine, const ServerOptions& options) {
  auto logger = make_logger(options.log_level);
  if (!logger.ok()) return logger.status();
  if (Status status = check_model_name(model_name_of(engine, options)); !status.ok()) {
    return status;
  }
  ApiKeys keys;
  if (!options.api_key_file.empty()) {
    auto loaded = ApiKeys::load(options.api_key_file);
    if (!loaded.ok()) return loaded.status();
    keys = *std::move(loaded);
  }
  auto parts = std::make_unique<Parts>(engine, options, std::move(keys), *std::move(logger));
  if (Status status = parts->listen(options.host, options.port); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() = default;

uint16_t Server::port() const { return parts_->port(); }
const std::string& Server::model_name() const { return parts_->model_name(); }
void Server::run() { parts_->run(); }
void Server::stop() { parts_->stop(); }

}  // namespace anyslot::server

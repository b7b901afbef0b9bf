#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "command.h"
#include "open_engine.h"
#include "options.h"
#include "output_file.h"
#include "server/server.h"
#include "sizes.h"

namespace anyslot::cli {
namespace {

constexpr const char* kServerGroup = "Server options";
constexpr int kMaxPort = 65535;

struct ServeOptions {
  EngineConfig engine;
  server::ServerOptions server;
  int max_queue = 256;
  int grace_seconds = 30;
};

Status serve(ServeOptions options, Interrupt& interrupt) {
  Expected<Engine> engine = open_engine(options.engine, interrupt);
  if (!engine) return engine.status();
  options.server.max_requests = static_cast<size_t>(options.engine.max_running_requests) +
                                static_cast<size_t>(options.max_queue);
  options.server.grace = std::chrono::seconds(options.grace_seconds);
  // The usage at the end of a stream has all ids, of 256 bytes that JSON may double.
  size_t& unsent = options.server.limits.max_unsent_bytes;
  unsent =
      std::max(unsent, size_t{1024} * static_cast<size_t>(options.server.limits.max_documents));
  auto server = server::Server::create(*engine, options.server);
  if (!server) return server.status();
  interrupt.at_first_signal([&server] { (*server)->stop(); });
  const std::string& host = options.server.host;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  Status status = print(fmt::format("serving {} at http://{}:{}\n", (*server)->model_name(),
                                    is_ipv6 ? "[" + host + "]" : host, (*server)->port()));
  if (status.ok()) (*server)->run();
  interrupt.at_first_signal({});
  return status;
}

void add_size_option(CLI::App& command, const std::string& name, const std::string& help,
                     size_t& value) {
  command
      .add_option_function<std::string>(
          name,
          [name, &value](const std::string& text) {
            const Expected<int64_t> bytes = parse_size(text);
            if (!bytes.ok()) throw CLI::ValidationError(name, bytes.status().message());
            if (*bytes == 0) throw CLI::ValidationError(name, "must be more than 0");
            value = static_cast<size_t>(*bytes);
          },
          help)
      ->type_name("SIZE")
      ->group(kServerGroup);
}

template <typename T>
CLI::Option* add_count_option(CLI::App& command, const std::string& name, T& value, int minimum,
                              const std::string& help) {
  return command.add_option(name, value, help)
      ->type_name("N")
      ->check(at_least(minimum))
      ->group(kServerGroup);
}

void add_address_options(CLI::App& command, server::ServerOptions& options) {
  command
      .add_option("--host", options.host,
                  "address to listen on; 0.0.0.0 or :: for all (default: 127.0.0.1)")
      ->type_name("HOST")
      ->group(kServerGroup);
  command
      .add_option("--port", options.port, "port to listen on; 0 picks a free one (default: 8080)")
      ->type_name("N")
      ->check(between(0, kMaxPort))
      ->group(kServerGroup);
  command
      .add_option("--api-key-file", options.api_key_file,
                  "file of the API keys, one per line; each has a cache of its own (default: "
                  "nobody needs a key)")
      ->type_name("FILE")
      ->group(kServerGroup);
  command
      .add_option("--served-model-name", options.served_model_name,
                  "the name that requests must give (default: that of the model's folder)")
      ->type_name("NAME")
      ->group(kServerGroup);
  command
      .add_option("--log-level", options.log_level,
                  "trace, debug, info, warning, error or off, on standard error (default: info)")
      ->type_name("LEVEL")
      ->group(kServerGroup);
}

void add_limit_options(CLI::App& command, ServeOptions& options) {
  server::ServerOptions& server = options.server;
  add_count_option(command, "--max-queue", options.max_queue, 0,
                   "requests that may wait beside those in the batch; more are answered with "
                   "429 (default: 256)");
  add_count_option(command, "--default-max-tokens", server.default_chat_tokens, 1,
                   "max_tokens of a chat request that does not set it (default: 1024)");
  add_count_option(
      command, "--grace-seconds", options.grace_seconds, 0,
      "seconds from Ctrl-C or SIGTERM to the end; running requests may go on until its last "
      "quarter, of 2 s at most, when they are cut off (default: 30)");
  add_count_option(command, "--max-connections", server.limits.max_connections, 1,
                   "most connections at once; more wait (default: 1024)");
  add_count_option(command, "--max-documents", server.limits.max_documents, 1,
                   "most documents in one request (default: 1024)");
  add_size_option(command, "--max-body", "largest body of a request (default: 16MiB)",
                  server.limits.max_body_bytes);
}

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API");
  auto options = std::make_shared<ServeOptions>();
  add_engine_options(*command, options->engine, EngineOptionSet::kServing);
  add_address_options(*command, options->server);
  add_limit_options(*command, *options);
  command->footer(
      "One line on standard output tells the address when the server is ready. Ctrl-C or SIGTERM "
      "ends it: running requests have --grace-seconds to finish; a second signal ends it at once.");
  command->callback([options, &action] {
    action = [options](Interrupt& interrupt) { return serve(*options, interrupt); };
  });
}

}  // namespace anyslot::cli

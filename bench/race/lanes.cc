#include "lanes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/bundled_data.h"
#include "cli/machine_info.h"
#include "cli/open_engine.h"
#include "cli/text_file.h"

namespace anyslot::bench {

namespace {

/// What a lane of a method says.
struct MethodNote {
  Method method;
  const char* note;
  LaneReuse reuse;
};
constexpr MethodNote kNotes[] = {
    {Method::kLazy, "one cached copy of each document fits every slot", LaneReuse::kDocuments},
    {Method::kBlock, "copies the cached documents, turns their keys", LaneReuse::kDocuments},
    {Method::kMepic, "one cached copy, turned anew at every step", LaneReuse::kDocuments},
    {Method::kPrefix, "reuses only what begins like an earlier prompt", LaneReuse::kPrefix},
    {Method::kFull, "computes everything, every time", LaneReuse::kNothing}};

/// Without its target.
Lane method_lane(Method method) {
  Lane lane;
  lane.name = method_name(method);
  const MethodNote* note = std::ranges::find(kNotes, method, &MethodNote::method);
  lane.note = note->note;
  lane.reuse = note->reuse;
  return lane;
}

/// A name for caches that no race had before.
std::string new_salt() {
  return fmt::format("race-{}-{}", ::getpid(),
                     std::chrono::system_clock::now().time_since_epoch().count());
}

std::string lane_salt(const std::string& salt, size_t number) {
  return fmt::format("{}-{}", salt, number);
}

/// The method that the engine's warnings are about: the first that encodes documents alone.
Method main_method(const std::vector<Method>& methods) {
  if (std::ranges::find(methods, Method::kLazy) != methods.end()) return Method::kLazy;
  const auto alone = std::ranges::find_if(
      methods, [](Method method) { return method_lane(method).reuse == LaneReuse::kDocuments; });
  return alone == methods.end() ? methods.front() : *alone;
}

Expected<OpenLanes> lanes_in_process(const LaneOptions& options, cli::Interrupt& interrupt) {
  EngineConfig config = options.engine;
  config.model_path = options.model;
  config.method = main_method(options.methods);
  if (config.model_path.empty()) {
    Expected<cli::BundledData> bundled = cli::find_bundled_data();
    if (!bundled) return bundled.status();
    config.model_path = bundled->model;
  } else if (Status status = cli::check_model_option(config.model_path); !status) {
    return status;
  }
  Expected<Engine> engine = cli::open_engine(config, interrupt);
  if (!engine) return engine.status();
  OpenLanes open;
  open.engine = std::make_unique<Engine>(*std::move(engine));
  for (size_t i = 0; i < options.methods.size(); ++i) {
    Lane lane = method_lane(options.methods[i]);
    lane.target = engine_target(*open.engine, options.methods[i], lane_salt("race", i));
    open.lanes.push_back(std::move(lane));
  }
  const std::string cpu = cli::machine_info().cpu;
  open.model = fmt::format(
      "{} in {}, {}.", open.engine->model().name, compute_type_name(config.dtype),
      config.device == "cuda" || cpu.empty() ? open.engine->model().backend : "on " + cpu);
  return open;
}

Expected<HttpTargetOptions> http_options(const LaneOptions& options, const std::string& url,
                                         const std::string& api_key, HttpModel& model) {
  HttpTargetOptions http;
  http.base_url = url;
  http.model = options.model;
  http.api_key = api_key;
  http.timeout_seconds = options.timeout_seconds;
  Expected<HttpModel> found = find_http_model(http);
  if (!found) return found.status();
  model = *std::move(found);
  if (http.model.empty()) http.model = model.id;
  http.documents_as_field = model.is_ours();
  return http;
}

Expected<OpenLanes> lanes_of_server(const LaneOptions& options, const std::string& api_key) {
  HttpModel model;
  Expected<HttpTargetOptions> http = http_options(options, options.url, api_key, model);
  if (!http) return http.status();
  if (!model.is_ours()) {
    return invalid_argument(
        fmt::format("--url: the server at {} is not AnySlot's and knows no methods; race it "
                    "against another one with --a URL --b URL",
                    options.url));
  }
  OpenLanes open;
  open.model = fmt::format("{} at {}.", http->model, options.url);
  const std::string salt = new_salt();
  for (size_t i = 0; i < options.methods.size(); ++i) {
    http->method = options.methods[i];
    http->cache_salt = lane_salt(salt, i);
    Expected<std::unique_ptr<Target>> target = open_http_target(*http);
    if (!target) return target.status();
    open.lanes.push_back(method_lane(options.methods[i]));
    open.lanes.back().target = *std::move(target);
  }
  return open;
}

/// "host:port" of a URL.
std::string place_of(std::string url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with(kScheme)) url.erase(0, kScheme.size());
  return url.substr(0, url.find('/'));
}

Expected<OpenLanes> lanes_of_servers(const LaneOptions& options, const std::string& api_key) {
  OpenLanes open;
  const std::string salt = new_salt();
  for (const std::string& url : {options.a, options.b}) {
    HttpModel model;
    Expected<HttpTargetOptions> http = http_options(options, url, api_key, model);
    if (!http) return http.status();
    if (model.is_ours()) http->cache_salt = lane_salt(salt, open.lanes.size());
    Expected<std::unique_ptr<Target>> target = open_http_target(*http);
    if (!target) return target.status();
    Lane lane;
    lane.name = place_of(url);
    lane.note = model.is_ours() ? fmt::format("AnySlot, {}", http->model)
                                : fmt::format("{}, documents in the prompt", http->model);
    lane.target = *std::move(target);
    open.lanes.push_back(std::move(lane));
  }
  open.model = fmt::format("A server each: {} and {}.", options.a, options.b);
  return open;
}

Expected<std::string> api_key_of(const LaneOptions& options) {
  if (options.api_key_file.empty()) return options.api_key;
  Expected<std::string> text = cli::read_file(options.api_key_file);
  if (!text) return text.status();
  std::string key = text->substr(0, text->find_first_of("\r\n"));
  const bool is_header_value = !key.empty() && std::ranges::all_of(key, [](unsigned char c) {
    return c > 0x20 && c < 0x7f;
  });
  if (is_header_value) return key;
  return invalid_argument(
      fmt::format("--api-key-file: the first line of {} is no key", options.api_key_file));
}

}  // namespace

Expected<OpenLanes> open_lanes(const LaneOptions& options, cli::Interrupt& interrupt) {
  if (options.in_process()) return lanes_in_process(options, interrupt);
  const Expected<std::string> api_key = api_key_of(options);
  if (!api_key) return api_key.status();
  return options.url.empty() ? lanes_of_servers(options, *api_key)
                             : lanes_of_server(options, *api_key);
}

}  // namespace anyslot::bench

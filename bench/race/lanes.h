#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "race.h"

namespace anyslot::bench {

/// Who races: two methods of the engine in process, two of one server, or two servers.
struct LaneOptions {
  std::string model;  // in process a folder, empty: the bundled one; of servers a name, empty: the
                      // first that each names
  std::string url;    // one server
  std::string a;      // or two
  std::string b;
  std::string api_key;
  std::string api_key_file;  // whose first line is the key
  std::vector<Method> methods = {Method::kLazy, Method::kPrefix};
  EngineConfig engine;
  double timeout_seconds = 300;

  bool in_process() const { return url.empty() && a.empty(); }
};

struct OpenLanes {
  std::unique_ptr<Engine> engine;  // of lanes in process
  std::vector<Lane> lanes;
  std::string model;  // and where it runs, for people
};

/// Opens the engine or asks the servers for their models. No lane shares a cache with another one,
/// as far as a server can keep them apart: our own does. Fails with kInvalidArgument for a folder
/// that is not there and a server that has no methods, else as cli::open_engine and
/// open_http_target.
Expected<OpenLanes> open_lanes(const LaneOptions& options, cli::Interrupt& interrupt);

}  // namespace anyslot::bench

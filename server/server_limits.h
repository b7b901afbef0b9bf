#pragma once

#include <chrono>
#include <cstddef>

namespace anyslot::server {

/// What one client may take of the server.
struct Limits {
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 16 << 20;
  size_t max_bodies_bytes = 256 << 20;  // of all requests whose bodies come or wait to be read
  int max_json_depth = 32;
  int max_documents = 1024;                          // of one request
  size_t max_unsent_bytes = 1 << 20;                 // of a stream that its client does not read
  int send_buffer_bytes = 256 << 10;                 // of a connection, in the kernel
  int max_connections = 1024;                        // more wait to be accepted
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests of a connection
  std::chrono::milliseconds header_timeout{10'000};  // from a request's first byte
  std::chrono::milliseconds body_timeout{60'000};    // from the end of its header
  std::chrono::milliseconds write_timeout{30'000};   // while the client takes nothing
  size_t least_write_rate = 16 << 10;                // bytes a second that a client takes
};

}  // namespace anyslot::server

#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "net.h"

namespace anyslot::server {

struct ClientReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;

  nlohmann::json json() const { return nlohmann::json::parse(body); }
  /// The code of an error in OpenAI's shape.
  std::string error_code() const;
  std::string error_message() const { return json()["error"]["message"]; }
};

/// A connection to a server on this machine. Calls wait at most five minutes and throw when it
/// breaks.
class TestClient {
 public:
  explicit TestClient(uint16_t port);

  ClientReply get(const std::string& target) { return request("GET", target, "", {}); }
  ClientReply post(const std::string& target, const nlohmann::json& body,
                   const std::map<std::string, std::string>& headers = {}) {
    return request("POST", target, body.dump(), headers);
  }
  ClientReply request(const std::string& method, const std::string& target, const std::string& body,
                      const std::map<std::string, std::string>& headers);

  void send(const std::string& bytes);
  void send_request(const std::string& method, const std::string& target, const std::string& body,
                    const std::map<std::string, std::string>& headers);
  ClientReply read_reply();

  /// The header of a stream; events follow.
  ClientReply open_stream(const std::string& target, const nlohmann::json& body,
                          const std::map<std::string, std::string>& headers = {});
  /// The data of the next event; none when the stream has ended properly.
  std::optional<std::string> next_event();
  /// The type of that event; empty: it had none.
  const std::string& event_name() const { return event_name_; }
  std::vector<std::string> all_events();

  /// What the server sends until it closes.
  std::string read_to_end();
  void close() { socket_.close(); }
  Tcp::socket& socket() { return socket_; }

 private:
  std::string read_line();
  std::string read_bytes(size_t size);
  bool read_more();

  asio::io_context io_;
  Tcp::socket socket_;
  std::string unread_;
  std::string events_;  // of the stream, without chunks
  std::string event_name_;
  bool stream_ended_ = false;
};

}  // namespace anyslot::server

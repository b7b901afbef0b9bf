#include "test_client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <stdexcept>

namespace anyslot::server {

std::string ClientReply::error_code() const {
  const nlohmann::json code = json().at("error").at("code");
  return code.is_null() ? "" : code.get<std::string>();
}

TestClient::TestClient(uint16_t port) : socket_(io_) {
  socket_.connect({asio::ip::make_address("127.0.0.1"), port});
  const timeval limit{300, 0};
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void TestClient::send(const std::string& bytes) { asio::write(socket_, asio::buffer(bytes)); }

void TestClient::send_request(const std::string& method, const std::string& target,
                              const std::string& body,
                              const std::map<std::string, std::string>& headers) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  if (!body.empty() && !headers.contains("Content-Type")) {
    text += "Content-Type: application/json\r\n";
  }
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty() || method == "POST") {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  send(text + "\r\n" + body);
}

ClientReply TestClient::request(const std::string& method, const std::string& target,
                                const std::string& body,
                                const std::map<std::string, std::string>& headers) {
  send_request(method, target, body, headers);
  return read_reply();
}

/// False when the server has closed. A plain recv, because of the time limit.
bool TestClient::read_more() {
  std::array<char, 16384> bytes{};
  ssize_t size = 0;
  do {  // a stop and its end interrupt calls that have a time limit
    size = ::recv(socket_.native_handle(), bytes.data(), bytes.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0) throw std::runtime_error("the connection broke or nothing came in time");
  unread_.append(bytes.data(), static_cast<size_t>(size));
  return size > 0;
}

std::string TestClient::read_line() {
  size_t end = 0;
  while ((end = unread_.find("\r\n")) == std::string::npos) {
    if (!read_more()) throw std::runtime_error("closed in a line: " + unread_);
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 2);
  return line;
}

std::string TestClient::read_bytes(size_t size) {
  while (unread_.size() < size) {
    if (!read_more()) throw std::runtime_error("closed in a body");
  }
  std::string bytes = unread_.substr(0, size);
  unread_.erase(0, size);
  return bytes;
}

std::string TestClient::read_to_end() {
  while (read_more()) {
  }
  return std::exchange(unread_, {});
}

ClientReply TestClient::read_reply() {
  ClientReply reply;
  reply.status = std::stoi(read_line().substr(9, 3));
  for (std::string line; !(line = read_line()).empty();) {
    const size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    reply.headers[name] = line.substr(colon + 2);
  }
  if (const auto length = reply.headers.find("content-length"); length != reply.headers.end()) {
    reply.body = read_bytes(std::stoul(length->second));
  }
  return reply;
}

ClientReply TestClient::open_stream(const std::string& target, const nlohmann::json& body,
                                    const std::map<std::string, std::string>& headers) {
  send_request("POST", target, body.dump(), headers);
  events_.clear();
  stream_ended_ = false;
  return read_reply();
}

std::optional<std::string> TestClient::next_event() {
  constexpr std::string_view kName = "event: ";
  constexpr std::string_view kLead = "data: ";
  size_t end = 0;
  while ((end = events_.find("\n\n")) == std::string::npos) {
    if (stream_ended_) {
      if (!events_.empty()) throw std::runtime_error("half an event: " + events_);
      return std::nullopt;
    }
    const size_t size = std::stoul(read_line(), nullptr, 16);
    events_ += read_bytes(size);
    if (!read_line().empty()) throw std::runtime_error("a chunk without an end");
    stream_ended_ = size == 0;
  }
  std::string event = events_.substr(0, end);
  events_.erase(0, end + 2);
  event_name_.clear();
  if (event.starts_with(kName)) {
    const size_t line = event.find('\n');
    event_name_ = event.substr(kName.size(), line - kName.size());
    event.erase(0, line + 1);
  }
  if (!event.starts_with(kLead)) throw std::runtime_error("no event: " + event);
  return event.substr(kLead.size());
}

std::vector<std::string> TestClient::all_events() {
  std::vector<std::string> events;
  while (auto event = next_event()) events.push_back(*std::move(event));
  return events;
}

}  // namespace anyslot::server

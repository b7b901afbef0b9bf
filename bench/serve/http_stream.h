#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anyslot/status.h"

namespace anyslot::bench {

/// Where a server is.
struct HttpAddress {
  std::string host;  // as in the URL, for the Host field
  std::string path;  // before every target: "" or "/prefix"
  std::vector<boost::asio::ip::tcp::endpoint> endpoints;
};

/// Resolves "http://host[:port][/path]"; a "/v1" at its end is left out. Fails with
/// kInvalidArgument for what is no such URL, with kNotFound for a host without an address.
Expected<HttpAddress> resolve_address(const std::string& url);

struct HttpCall {
  std::string method = "GET";
  std::string target;
  std::string body;             // JSON; empty: none
  std::string api_key;          // empty: none
  double connect_seconds = 30;  // to connect and to send
};

/// How a call ended.
enum class HttpEnd : uint8_t { kWhole, kNoConnection, kClosed };

/// One call and its answer, which may come over a long time. Use it through a shared_ptr, on the
/// loop's thread; after cancel() nothing is told any more.
class HttpStream : public std::enable_shared_from_this<HttpStream> {
 public:
  struct Listener {
    std::function<void(unsigned status, std::string_view content_type)> on_head;
    std::function<void(std::string_view bytes)> on_body;
    std::function<void(HttpEnd end, const std::string& why)> on_end;
  };

  HttpStream(boost::asio::io_context& loop, const HttpAddress& address, const HttpCall& call,
             Listener listener);
  void begin();
  void cancel();

 private:
  void send();
  void read_head();
  void read_more();
  void take_body();
  void end(HttpEnd how, const std::string& why);

  boost::beast::tcp_stream stream_;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  boost::beast::http::response_parser<boost::beast::http::string_body> parser_;
  boost::beast::flat_buffer buffer_;
  std::chrono::duration<double> connect_limit_;
  Listener listener_;
  bool ended_ = false;
};

struct HttpReply {
  unsigned status = 0;
  std::string body;
};

/// Makes a call and waits for its answer, `seconds` at most. Fails with kUnavailable.
Expected<HttpReply> call_and_wait(const HttpAddress& address, const HttpCall& call, double seconds);

}  // namespace anyslot::bench

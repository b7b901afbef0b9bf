#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace anyslot::bench {

struct FakeRequest {
  std::string method;
  std::string target;
  std::string body;
};

/// The bytes of the whole HTTP answer to a request; called on several threads.
using FakeAnswer = std::function<std::string(const FakeRequest& request)>;

/// An HTTP answer with a JSON or other body. `status`: "404 Not Found".
std::string fake_reply(const std::string& status, const std::string& body,
                       std::string_view type = "application/json");
/// A chunked answer of server-sent events, each given with the name of its field ("data: {}");
/// without `ended` the stream stays open until the connection closes.
std::string fake_stream(const std::vector<std::string>& events, bool ended = true);

/// What a request does is a word in its body: "do-fail", "do-stall", "do-close", "do-error",
/// "do-plain"; all else gets the answer "one two three" in three pieces.
std::string answer_by_word(const FakeRequest& request);

/// A server that answers as it is told. A request with "do-stall" in its body stays open
/// afterwards.
class FakeServer {
 public:
  explicit FakeServer(FakeAnswer answer = answer_by_word);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const;
  /// The largest number of prompts that were open at once.
  int most_at_once() const { return most_; }
  /// The bodies of all prompts.
  std::vector<std::string> bodies() const;

 private:
  void accept();
  void serve(boost::asio::ip::tcp::socket socket);

  FakeAnswer answer_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::thread> threads_;
  std::thread acceptor_thread_;
  mutable std::mutex mutex_;
  std::vector<std::string> bodies_;
  std::atomic<int> open_ = 0;
  std::atomic<int> most_ = 0;
};

}  // namespace anyslot::bench

#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace anyslot::bench {

/// A server whose way with a request is a word in its body: "do-fail", "do-stall", "do-close",
/// "do-error", "do-plain"; all else gets the answer "one two three" in three pieces.
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const;
  /// The largest number of requests that were open at once.
  int most_at_once() const { return most_; }
  std::vector<std::string> bodies() const;

 private:
  void accept();
  void serve(boost::asio::ip::tcp::socket socket);

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

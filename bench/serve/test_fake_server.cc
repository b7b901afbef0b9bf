#include "test_fake_server.h"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <utility>

namespace anyslot::bench {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

std::string delta(const std::string& fields) {
  return R"(data: {"choices": [{"delta": {)" + fields + "}}]}";
}

std::string piece(const std::string& text) { return delta(R"("content": ")" + text + '"'); }

const std::string kRole = delta(R"("role": "assistant", "content": "")");

bool is_prompt(const FakeRequest& request) { return request.target.ends_with("/completions"); }

}  // namespace

std::string fake_reply(const std::string& status, const std::string& body, std::string_view type) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string fake_stream(const std::vector<std::string>& events, bool ended) {
  std::string bytes =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& event : events) {
    char size[32];
    snprintf(size, sizeof size, "%zx\r\n", event.size() + 2);
    bytes += size + event + "\n\n\r\n";
  }
  return ended ? bytes + "0\r\n\r\n" : bytes;
}

std::string answer_by_word(const FakeRequest& request) {
  if (!is_prompt(request)) return fake_reply("404 Not Found", "{}");
  const auto asks = [&](const char* word) { return request.body.find(word) != std::string::npos; };
  if (asks("do-fail")) {
    return fake_reply("429 Too Many Requests", R"({"error": {"message": "full"}})");
  }
  if (asks("do-plain")) return fake_reply("200 OK", R"({"choices": []})");
  if (asks("do-error")) {
    return fake_stream({kRole, R"(data: {"error": {"message": "broken"}})"}, false);
  }
  if (asks("do-close") || asks("do-stall")) return fake_stream({kRole, piece("one ")}, false);
  return fake_stream({kRole, piece("one "), piece("two "), piece("three"),
                      R"(data: {"choices": [{"delta": {}, "finish_reason": "stop"}]})",
                      R"(data: {"choices": [], "usage": {"prompt_tokens": 10, )"
                      R"("completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}}})",
                      "data: [DONE]"});
}

FakeServer::FakeServer(FakeAnswer answer)
    : answer_(std::move(answer)),
      acceptor_(io_, Tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
  acceptor_thread_ = std::thread([this] { accept(); });
}

FakeServer::~FakeServer() {
  boost::system::error_code ignored;
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // wakes the accept
  acceptor_thread_.join();
  acceptor_.close(ignored);
  for (std::thread& thread : threads_) thread.join();
}

std::string FakeServer::url() const {
  return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

std::vector<std::string> FakeServer::bodies() const {
  const std::lock_guard lock(mutex_);
  return bodies_;
}

void FakeServer::accept() {
  while (true) {
    boost::system::error_code error;
    Tcp::socket socket = acceptor_.accept(error);
    if (error) return;
    threads_.emplace_back([this](Tcp::socket taken) { serve(std::move(taken)); },
                          std::move(socket));
  }
}

void FakeServer::serve(Tcp::socket socket) {
  boost::system::error_code error;
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> message;
  http::read(socket, buffer, message, error);
  if (error) return;
  const FakeRequest request{std::string(message.method_string()), std::string(message.target()),
                            message.body()};
  if (!is_prompt(request)) {
    asio::write(socket, asio::buffer(answer_(request)), error);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    bodies_.push_back(request.body);
    most_ = std::max<int>(most_, ++open_);
  }
  asio::write(socket, asio::buffer(answer_(request)), error);
  if (request.body.find("do-stall") != std::string::npos) {
    char byte = 0;
    socket.read_some(asio::buffer(&byte, 1), error);  // until the client has had enough
  }
  --open_;
}

}  // namespace anyslot::bench

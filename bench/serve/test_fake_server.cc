#include "test_fake_server.h"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>

namespace anyslot::bench {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

std::string chunk(const std::string& data) {
  char size[32];
  const std::string event = "data: " + data + "\n\n";
  snprintf(size, sizeof size, "%zx\r\n", event.size());
  return size + event + "\r\n";
}

std::string piece(const std::string& text) {
  return chunk(R"({"choices": [{"delta": {"content": ")" + text + R"("}}]})");
}

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kRole =
    chunk(R"({"choices": [{"delta": {"role": "assistant", "content": ""}}]})");

std::string whole_answer() {
  return kHead + kRole + piece("one ") + piece("two ") + piece("three") +
         chunk(R"({"choices": [{"delta": {}, "finish_reason": "stop"}]})") +
         chunk(R"({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 4, )"
               R"("prompt_tokens_details": {"cached_tokens": 6}}})") +
         chunk("[DONE]") + "0\r\n\r\n";
}

std::string plain(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string answer_to(const std::string& body) {
  const auto asks = [&](const char* word) { return body.find(word) != std::string::npos; };
  if (asks("do-fail")) return plain("429 Too Many Requests", R"({"error": {"message": "full"}})");
  if (asks("do-plain")) return plain("200 OK", R"({"choices": []})");
  if (asks("do-error")) return kHead + kRole + chunk(R"({"error": {"message": "broken"}})");
  if (asks("do-close") || asks("do-stall")) return kHead + kRole + piece("one ");
  return whole_answer();
}

}  // namespace

FakeServer::FakeServer() : acceptor_(io_, Tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
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
  http::request<http::string_body> request;
  http::read(socket, buffer, request, error);
  if (error) return;
  if (request.method() != http::verb::post || request.target() == "/tokenize") {
    asio::write(socket, asio::buffer(plain("404 Not Found", "{}")), error);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    bodies_.push_back(request.body());
    most_ = std::max<int>(most_, ++open_);
  }
  asio::write(socket, asio::buffer(answer_to(request.body())), error);
  if (request.body().find("do-stall") != std::string::npos) {
    char byte = 0;
    socket.read_some(asio::buffer(&byte, 1), error);  // until the client has had enough
  }
  --open_;
}

}  // namespace anyslot::bench

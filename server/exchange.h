#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http_exchange.h"
#include "server_limits.h"

namespace anyslot::server {

/// How an exchange writes to its connection. Neither call comes back after close().
class Wire {
 public:
  virtual ~Wire() = default;
  /// Sends bytes, one piece at a time, and calls `done` when the kernel has taken them all.
  virtual void write(std::string bytes, std::function<void()> done) = 0;
  /// The answer has ended; `keep`: the next request may come.
  virtual void finished(bool keep) = 0;
  /// Closes the connection: the client does not read.
  virtual void drop(std::string_view reason) = 0;
};

/// One request's answer, as bytes: a reply, or server-sent events in chunks whose total is bounded
/// while the client does not read. What fails in it ends the connection. I/O thread only.
class Exchange : public ResponseSink, public std::enable_shared_from_this<Exchange> {
 public:
  struct Setup {
    RequestHead head;
    bool http11 = true;                                 // knows chunks
    bool keep_alive = true;                             // what the client wants
    std::shared_ptr<ActiveRequests::Place> place = {};  // held until all is written
  };
  /// `wire` must outlive this or be taken away by detach().
  Exchange(Wire& wire, RequestHandler& handler, const Limits& limits, Setup setup);

  void reply(HttpReply reply) override;
  void begin_events() override;
  void send_event(std::string_view name, std::string_view data) override;
  void end_events() override;
  void on_gone(std::function<void()> gone) override;

  /// No further request on this connection.
  void close_after() { keep_alive_ = false; }
  /// Nobody answers any more: replies 503, or ends the connection where an answer has begun.
  void abandon();
  bool begun() const { return begun_; }
  /// The connection has gone: whoever answers is told.
  void detach();

 private:
  template <typename Work>
  void guard(Work work);
  std::string header(int status, const HttpReply& reply, bool events) const;
  void append(std::string_view bytes);
  void append_chunk(std::string_view bytes);
  void flush();
  void written();

  Wire* wire_;
  RequestHandler& handler_;
  const Limits& limits_;
  RequestHead head_;
  std::shared_ptr<ActiveRequests::Place> place_;
  bool http11_;
  bool keep_alive_;
  bool begun_ = false;
  bool ended_ = false;    // nothing more will be appended
  bool writing_ = false;  // a piece is with the wire
  bool gone_ = false;
  std::string unsent_;
  std::function<void()> on_gone_;
};

}  // namespace anyslot::server

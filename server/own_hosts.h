#pragma once

#include <string>
#include <string_view>

namespace anyslot::server {

/// The hosts under which a server may be asked. Where nothing but the network's reach protects it,
/// a web page could give its own name this machine's address, so that a browser takes the server
/// for a part of the page (DNS rebinding); so such a server knows only names that are this
/// machine's.
class OwnHosts {
 public:
  /// Any host.
  OwnHosts() = default;
  /// This machine's loopback names and addresses, and `listening`, the host that it listens on.
  explicit OwnHosts(std::string_view listening);

  /// `host` is a Host header: a name or an address, and perhaps a port.
  bool has(std::string_view host) const;

 private:
  bool any_ = true;
  std::string listening_;
};

}  // namespace anyslot::server

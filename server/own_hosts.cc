#include "own_hosts.h"

#include <boost/asio/ip/address.hpp>

#include "net.h"

namespace anyslot::server {

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return lower;
}

/// "[::1]:80" to "::1", "a.b:80" to "a.b".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

OwnHosts::OwnHosts(std::string_view listening) : any_(false), listening_(lower_case(listening)) {}

bool OwnHosts::has(std::string_view host) const {
  if (any_) return true;
  std::string name = lower_case(without_port(host));
  if (name.ends_with('.')) name.pop_back();
  if (name == listening_ || name == "localhost" || name.ends_with(".localhost")) return true;
  ErrorCode no_address;
  const auto address = asio::ip::make_address(name, no_address);
  return !no_address && address.is_loopback();
}

}  // namespace anyslot::server

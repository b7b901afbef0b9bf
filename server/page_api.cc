#include "page_api.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "json_body.h"
#include "page_files.h"

namespace anyslot::server {

namespace {

/// Nothing from elsewhere, and no script or style that does not stand in a file of its own: what
/// a document or an answer holds can never run in the page.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kContentTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
}};

std::string content_type_of(std::string_view name) {
  for (const auto& [ending, type] : kContentTypes) {
    if (name.ends_with(ending)) return std::string(type);
  }
  return "application/octet-stream";
}

HttpReply page_reply(std::string content_type, std::string cache_control) {
  HttpReply reply;
  reply.content_type = std::move(content_type);
  reply.headers = {{"Cache-Control", std::move(cache_control)},
                   {"Content-Security-Policy", std::string(kContentSecurityPolicy)},
                   {"Cross-Origin-Resource-Policy", "same-origin"},
                   {"Referrer-Policy", "no-referrer"},
                   {"X-Content-Type-Options", "nosniff"}};
  return reply;
}

/// A browser asks each time whether its copy still holds, so that files of two versions of the
/// program never meet in one page.
HttpReply file_reply(const PageFile& file, const RequestHead& head) {
  HttpReply reply = page_reply(content_type_of(file.name), "no-cache");
  const std::string etag = '"' + std::string(file.digest) + '"';
  reply.headers.emplace_back("ETag", etag);
  reply.body = file.bytes;
  if (head.if_none_match == "*" || head.if_none_match.find(etag) != std::string::npos) {
    reply.status = 304;
  }
  return reply;
}

std::string path_of(const PageFile& file) {
  return file.name == "index.html" ? "/" : "/" + std::string(file.name);
}

}  // namespace

void add_page_routes(Router& router, bool needs_key) {
  for (const PageFile& file : page_files()) {
    router.add({"GET", path_of(file), true, {}, [&file](const Call& call) {
                  call.sink->reply(file_reply(file, call.http.head));
                }});
  }
  router.add({"GET", "/page/server.json", true, {}, [needs_key](const Call& call) {
                HttpReply reply = page_reply("application/json", "no-store");
                reply.body = to_text({{"needs_key", needs_key}});
                call.sink->reply(std::move(reply));
              }});
}

}  // namespace anyslot::server

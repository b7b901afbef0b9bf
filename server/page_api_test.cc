// The page's files over HTTP; what the page does in a browser is tested in tests/page.
#include "page_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "page_files.h"
#include "support/temporary_folder.h"
#include "test_server.h"

namespace anyslot::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing_support::TemporaryFolder;

class PageTest : public SharedServerTest<PageTest> {
 protected:
  static ClientReply get(const std::string& path,
                         const std::map<std::string, std::string>& headers = {}) {
    return server->connect().request("GET", path, "", headers);
  }

  /// An answer without a body may tell the length of the one that it stands for.
  static std::string raw(const std::string& method, const std::string& path,
                         const std::string& headers = "") {
    TestClient client = server->connect();
    client.send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                headers + "\r\n");
    return client.read_to_end();
  }
  static std::string body_of(const std::string& reply) {
    return reply.substr(reply.find("\r\n\r\n") + 4);
  }
};

TEST_F(PageTest, ServesEveryFileWithItsType) {
  const std::map<std::string, std::string> types = {{"html", "text/html; charset=utf-8"},
                                                    {"css", "text/css; charset=utf-8"},
                                                    {"mjs", "text/javascript; charset=utf-8"},
                                                    {"svg", "image/svg+xml"}};
  std::set<std::string> seen;
  for (const PageFile& file : page_files()) {
    const std::string name(file.name);
    const std::string ending = name.substr(name.rfind('.') + 1);
    const ClientReply reply = get(name == "index.html" ? "/" : "/" + name);
    EXPECT_EQ(reply.status, 200) << name;
    ASSERT_TRUE(types.contains(ending)) << name;
    EXPECT_EQ(reply.headers.at("content-type"), types.at(ending)) << name;
    EXPECT_EQ(reply.body, file.bytes) << name;
    seen.insert(ending);
  }
  EXPECT_EQ(seen.size(), types.size());
  EXPECT_THAT(get("/").body, StartsWith("<!doctype html>"));
}

TEST_F(PageTest, AllowsNothingFromElsewhereAndNothingInline) {
  for (const char* path : {"/", "/page/main.mjs", "/page/style.css", "/page/server.json"}) {
    const ClientReply reply = get(path);
    const std::string& policy = reply.headers.at("content-security-policy");
    EXPECT_THAT(policy, StartsWith("default-src 'none';")) << path;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_THAT(policy, Not(HasSubstr("http")));
    EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
    EXPECT_EQ(reply.headers.at("referrer-policy"), "no-referrer");
    EXPECT_EQ(reply.headers.at("cross-origin-resource-policy"), "same-origin");
  }
}

TEST_F(PageTest, SendsAFileOnlyToThoseWhoLackIt) {
  const std::string etag = get("/page/main.mjs").headers.at("etag");
  EXPECT_NE(get("/").headers.at("etag"), etag);
  EXPECT_EQ(get("/").headers.at("cache-control"), "no-cache");
  for (const std::string& known : {etag, "\"other\", W/" + etag, std::string("*")}) {
    const std::string reply = raw("GET", "/page/main.mjs", "If-None-Match: " + known + "\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 304 ")) << known;
    EXPECT_THAT(reply, HasSubstr("ETag: " + etag));
    EXPECT_THAT(body_of(reply), IsEmpty());
  }
  EXPECT_EQ(get("/page/main.mjs", {{"If-None-Match", "\"other\""}}).status, 200);
}

TEST_F(PageTest, AnswersHeadWithTheLengthOnly) {
  const std::string reply = raw("HEAD", "/");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(reply, HasSubstr("Content-Length: " + std::to_string(get("/").body.size())));
  EXPECT_THAT(body_of(reply), IsEmpty());
}

TEST_F(PageTest, HasNothingElse) {
  for (const char* path : {"/index.html", "/page/", "/page/none.mjs", "/page/../index.html",
                           "/page/%2e%2e/main.mjs", "/style.css"}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
  EXPECT_EQ(server->connect().request("POST", "/", "{}", {}).status, 405);
}

TEST_F(PageTest, NeedsNoKeyItself) {
  EXPECT_EQ(get("/page/server.json").json()["needs_key"], false);
  const TemporaryFolder folder;
  ServerOptions options;
  options.api_key_file = folder.write("keys", "alpha\n");
  const TestServer with_keys(bundled_config(), options);
  TestClient client = with_keys.connect();
  EXPECT_EQ(client.get("/").status, 200);
  EXPECT_EQ(client.get("/page/main.mjs").status, 200);
  const ClientReply reply = client.get("/page/server.json");
  EXPECT_EQ(reply.json()["needs_key"], true);
  EXPECT_EQ(reply.headers.at("cache-control"), "no-store");
}

}  // namespace
}  // namespace anyslot::server

#include "request_head.h"

#include <gtest/gtest.h>

#include <map>

namespace anyslot::server {
namespace {

RequestHeader header_of(const std::string& target,
                        const std::multimap<std::string, std::string>& fields,
                        unsigned version = 11) {
  RequestHeader header;
  header.method(http::verb::post);
  header.target(target);
  header.version(version);
  for (const auto& [name, value] : fields) header.insert(name, value);
  return header;
}

TEST(RequestHead, TakesAbsoluteForm) {
  const auto head = [](const std::string& target) {
    return read_request_head(header_of(target, {{"Host", "b"}}));
  };
  EXPECT_EQ(head("/x?y").target, "/x?y");
  EXPECT_EQ(head("/x?y").host, "b");
  EXPECT_EQ(head("HTTP://a:80/x?y").target, "/x?y");
  EXPECT_EQ(head("http://a:80/x?y").host, "a:80") << "what the target names counts (RFC 9112)";
  EXPECT_EQ(head("http://a").target, "/");
  EXPECT_EQ(head("http://a?y").target, "/?y");
  EXPECT_EQ(head("*").target, "*");
}

TEST(RequestHead, TakesAKeyFromEitherField) {
  const auto authorization = [](const std::multimap<std::string, std::string>& fields) {
    return read_request_head(header_of("/", fields)).authorization;
  };
  EXPECT_EQ(authorization({}), "");
  EXPECT_EQ(authorization({{"Authorization", "Bearer a"}}), "Bearer a");
  EXPECT_EQ(authorization({{"X-Api-Key", "b"}}), "Bearer b");
  EXPECT_EQ(authorization({{"X-Api-Key", "b"}, {"Authorization", "Bearer a"}}), "Bearer a");
}

TEST(RequestHead, TellsWhetherABodyFollows) {
  const auto has_body = [](const std::multimap<std::string, std::string>& fields) {
    return read_request_head(header_of("/", fields)).has_body;
  };
  EXPECT_FALSE(has_body({}));
  EXPECT_FALSE(has_body({{"Content-Length", "0"}}));
  EXPECT_TRUE(has_body({{"Content-Length", "10"}}));
  EXPECT_TRUE(has_body({{"Transfer-Encoding", "chunked"}}));
}

TEST(RequestHead, RefusesFramingThatItDoesNotKnow) {
  const auto status = [](std::multimap<std::string, std::string> fields, unsigned version = 11) {
    fields.emplace("Host", "a");
    const auto fault = framing_fault(header_of("/", fields, version));
    return fault ? fault->status : 0;
  };
  EXPECT_EQ(status({}), 0);
  EXPECT_EQ(status({{"Content-Length", "5"}}), 0);
  EXPECT_EQ(status({{"Transfer-Encoding", "Chunked"}}), 0);
  for (const char* other : {"gzip, chunked", "xchunked", "identity", "chunked, gzip", ""}) {
    EXPECT_EQ(status({{"Transfer-Encoding", other}}), 501) << other;
  }
  EXPECT_EQ(status({{"Transfer-Encoding", "gzip"}, {"Transfer-Encoding", "chunked"}}), 501);
  EXPECT_EQ(status({{"Transfer-Encoding", "identity"}, {"Content-Length", "5"}}), 400);
  EXPECT_EQ(status({{"Transfer-Encoding", "chunked"}}, 10), 400);
}

TEST(RequestHead, WantsOneHost) {
  EXPECT_TRUE(framing_fault(header_of("/", {})).has_value());
  EXPECT_TRUE(framing_fault(header_of("/", {{"Host", "a"}, {"Host", "b"}})).has_value());
  EXPECT_FALSE(framing_fault(header_of("/", {}, 10)).has_value()) << "HTTP/1.0 has none";
}

TEST(RequestHead, ReadsExpectInAnyCase) {
  EXPECT_TRUE(expects_continue(header_of("/", {{"Expect", "100-Continue"}})));
  EXPECT_FALSE(expects_continue(header_of("/", {{"Expect", "100-Continue"}}, 10)));
  EXPECT_FALSE(expects_continue(header_of("/", {})));
}

}  // namespace
}  // namespace anyslot::server

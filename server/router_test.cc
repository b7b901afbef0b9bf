#include "router.h"

#include <gtest/gtest.h>

namespace anyslot::server {
namespace {

Router documents_router() {
  Router router;
  router.add({"GET", "/v1/documents", false, {"cache_salt"}, {}});
  router.add({"POST", "/v1/documents", false, {}, {}});
  router.add({"DELETE", "/v1/documents/{key}", false, {"cache_salt"}, {}});
  router.add({"POST", "/v1/documents/{key}/pin", false, {}, {}});
  return router;
}

TEST(Router, FindsByMethodAndPath) {
  const Router router = documents_router();
  const auto match = router.find("POST", "/v1/documents/ab%2Fc/pin");
  ASSERT_TRUE(match.ok());
  EXPECT_EQ(match->route->path, "/v1/documents/{key}/pin");
  EXPECT_EQ(match->key, "ab/c");
  EXPECT_EQ(router.find("GET", "/v1/documents")->route->method, "GET");
}

TEST(Router, ReadsParameters) {
  const Router router = documents_router();
  const auto match = router.find("DELETE", "/v1/documents/ab?cache_salt=a+b%26c&");
  ASSERT_TRUE(match.ok());
  EXPECT_EQ(match->query.at("cache_salt"), "a b&c");
}

TEST(Router, AnswersHeadWhereItAnswersGet) {
  const Router router = documents_router();
  const auto match = router.find("HEAD", "/v1/documents?cache_salt=a");
  ASSERT_TRUE(match.ok());
  EXPECT_EQ(match->route->method, "GET");
  EXPECT_EQ(router.find("HEAD", "/v1/documents/a/pin").error().status, 405);
}

TEST(Router, PassesOverParametersOfOpenRoutes) {
  Router router;
  router.add({"GET", "/health", true, {}, {}});
  EXPECT_TRUE(router.find("GET", "/health?probe=1&%zz").ok());
}

TEST(Router, RefusesWhatItDoesNotKnow) {
  const Router router = documents_router();
  EXPECT_EQ(router.find("GET", "/v1/document").error().status, 404);
  EXPECT_EQ(router.find("DELETE", "/v1/documents/").error().status, 404);
  EXPECT_EQ(router.find("DELETE", "/v1/documents/a/b").error().status, 404);
  EXPECT_EQ(router.find("POST", "/v1/documents/%zz/pin").error().status, 404);
  EXPECT_EQ(router.find("GET", "/v1/documents?x=1").error().status, 400);
  EXPECT_EQ(router.find("GET", "/v1/documents?cache_salt=%").error().status, 400);
  const auto wrong_method = router.find("PUT", "/v1/documents");
  EXPECT_EQ(wrong_method.error().status, 405);
  EXPECT_EQ(wrong_method.error().headers.at(0).second, "GET, HEAD, POST");
}

}  // namespace
}  // namespace anyslot::server

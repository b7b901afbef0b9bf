#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "answer_request.h"
#include "errors.h"

namespace anyslot::server {

/// What the tests of readers have them read by.
inline const RequestRules kRules{"demo", 3, 1000};

using Parse = ApiExpected<AnswerRequest> (*)(const nlohmann::json& body, const RequestRules& rules);

inline AnswerRequest must_parse(Parse parse, const nlohmann::json& body) {
  auto request = parse(body, kRules);
  if (!request) throw std::runtime_error(request.error().message);
  return *std::move(request);
}

/// Of an accepted request an error 200.
inline ApiError error_of_request(Parse parse, const nlohmann::json& body) {
  auto request = parse(body, kRules);
  return request ? ApiError{200, "accepted: " + body.dump()} : request.error();
}

inline void expect_refused(Parse parse, const nlohmann::json& body, const std::string& param,
                           const std::string& reason) {
  const ApiError error = error_of_request(parse, body);
  EXPECT_EQ(error.status, 400) << error.message;
  EXPECT_EQ(error.param, param) << error.message;
  EXPECT_THAT(error.message, ::testing::HasSubstr(reason));
}

}  // namespace anyslot::server

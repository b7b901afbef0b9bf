#pragma once

#include <string>
#include <utility>
#include <vector>

namespace anyslot::server {

/// Why a request gets no answer. Each API tells it in its own shape.
struct ApiError {
  int status = 400;
  std::string message;
  std::string param = {};  // the field that is wrong; empty: none
  std::string code = {};   // empty: none
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The body of an answer that tells an error, on one line.
using ErrorFormat = std::string (*)(const ApiError& error);

}  // namespace anyslot::server

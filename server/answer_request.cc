#include "answer_request.h"

#include <string>

namespace anyslot::server {

void check_model(RequestFields& fields, const std::string& served) {
  fields.require("model");
  const std::string model = fields.string("model").value_or(served);
  if (model == served) return;
  fields.fail(ApiError{
      404, "the model \"" + excerpt(model) + "\" is not served here; use \"" + served + "\"",
      "model", "model_not_found"});
}

std::optional<Method> read_method(RequestFields& fields) {
  const auto name = fields.string("method");
  if (!name) return std::nullopt;
  const Expected<Method> method = parse_method(excerpt(*name));
  if (method.ok()) return *method;
  fields.fail("method", method.status().message());
  return std::nullopt;
}

void read_own_fields(RequestFields& fields, AnswerRequest& request) {
  request.method = read_method(fields);
  request.cache_salt = fields.string("cache_salt").value_or("");
  if (const auto ignore = fields.boolean("ignore_eos")) request.sampling.ignore_eos = *ignore;
}

}  // namespace anyslot::server

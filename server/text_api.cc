#include "text_api.h"

#include <utility>

#include "answer_request.h"
#include "json_body.h"
#include "request_fields.h"
#include "worker_reply.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr size_t kMaxTokens = 1 << 20;  // of one reply, of which each takes some 20 bytes

/// The fields are those of vLLM; parse_special lets the names of special tokens stand for them.
ApiExpected<json> tokenize(const ServingContext& context, RequestFields& fields) {
  if (fields.find("model") != nullptr) check_model(fields, context.rules.model);
  fields.require("prompt");
  const std::string prompt = fields.string("prompt").value_or("");
  const bool parse_special = fields.boolean("parse_special").value_or(false);
  const bool strings = fields.boolean("return_token_strs").value_or(false);
  fields.unsupported("add_special_tokens", {false});
  if (auto error = fields.finish()) return *std::move(error);

  std::vector<ByteRange> markup;
  if (parse_special) markup.push_back({0, prompt.size()});
  const auto tokens = context.engine.tokenize(prompt, markup);
  if (!tokens.ok()) return error_of(tokens.status());
  if (tokens->size() > kMaxTokens) {
    return ApiError{413,
                    "the text has " + std::to_string(tokens->size()) + " tokens; at most " +
                        std::to_string(kMaxTokens) + " are told at a time, so send it in parts",
                    "prompt", "too_many_tokens"};
  }
  json result = {{"count", tokens->size()},
                 {"max_model_len", context.engine.model().max_model_len},
                 {"tokens", *tokens}};
  if (strings) {
    json& list = result["token_strs"] = json::array();
    for (const int32_t id : *tokens) list.push_back(context.engine.token_bytes(id));
  }
  return result;
}

ApiExpected<json> detokenize(const ServingContext& context, RequestFields& fields) {
  if (fields.find("model") != nullptr) check_model(fields, context.rules.model);
  fields.require("tokens");
  std::vector<int32_t> tokens;
  if (const json* list = fields.array("tokens")) {
    for (const json& id : *list) {
      if (!is_token_id(id) || id.get<int64_t>() >= context.engine.model().vocab_size) {
        fields.fail("tokens", "must hold token ids below " +
                                  std::to_string(context.engine.model().vocab_size));
        break;
      }
      tokens.push_back(id.get<int32_t>());
    }
  }
  if (auto error = fields.finish()) return *std::move(error);
  if (!context.engine.model().has_tokenizer) {
    return ApiError{400, "the model has no tokenizer.json"};
  }
  return json{{"prompt", context.engine.detokenize(tokens)}};
}

using Work = ApiExpected<json> (*)(const ServingContext&, RequestFields&);

HttpReply answer(const ServingContext& context, const std::string& text, Work work) {
  const auto body = parse_body(text, context.limits.max_json_depth);
  if (!body) return error_reply(body.error());
  RequestFields fields(*body, "");
  const auto result = work(context, fields);
  if (!result) return error_reply(result.error());
  return json_reply(*result);
}

void add_route(Router& router, ServingContext& context, const std::string& path, Work work) {
  router.add({"POST",
              path,
              false,
              {},
              [&context, work](Call call) {
                reply_from_worker(context, std::move(call), [&context, work](const Call& of) {
                  return answer(context, of.http.body.text, work);
                });
              },
              /*takes_body=*/true});
}

}  // namespace

void add_text_routes(Router& router, ServingContext& context) {
  add_route(router, context, "/tokenize", tokenize);
  add_route(router, context, "/detokenize", detokenize);
}

}  // namespace anyslot::server

#include "answer_routes.h"

#include <string>
#include <utility>
#include <vector>

#include "answer_job.h"
#include "anthropic_answer.h"
#include "anthropic_count.h"
#include "blocks_answer.h"
#include "cohere_answer.h"
#include "openai_answer.h"

namespace anyslot::server {

void add_answer_routes(Router& router, ServingContext& context) {
  const auto answer_at = [&](const std::string& path, AnswerFormat format,
                             std::vector<std::string> query = {}) {
    router.add(
        {"POST", path, false, std::move(query),
         [&context, format](Call call) { AnswerJob::start(context, format, std::move(call)); },
         /*takes_body=*/true, format.error_body});
  };
  answer_at("/v1/completions", openai_completions_format());
  answer_at("/v1/chat/completions", openai_chat_format());
  answer_at("/v1/messages", anthropic_format(), {"beta"});
  add_count_route(router, context);
  answer_at("/v2/chat", cohere_format());
  answer_at("/generate", blocks_format());
}

}  // namespace anyslot::server

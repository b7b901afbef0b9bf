#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "test_fake_server.h"

namespace anyslot::bench {

/// What other servers than ours count of the prompts that they were sent. Their tokenizer makes two
/// tokens of a word; a prompt reuses what an earlier one began with, in whole blocks of 16 tokens.
struct OtherServerCounts {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
};

/// A fake that answers in the form of another server, whose name it gives as its model's.
class OtherServer {
 public:
  virtual ~OtherServer() = default;
  virtual std::string answer(const FakeRequest& request) = 0;
  virtual OtherServerCounts counts() const = 0;
};

/// As vLLM 0.11 and later (its folder vllm/entrypoints/openai, and vllm/v1/metrics/loggers.py for
/// /metrics): the last token comes with the finish_reason, usage in an event of its own and only
/// when it is asked for, cached tokens only when there are any, errors within "error".
std::unique_ptr<OtherServer> other_server_vllm();

enum class LlamaCppBuild : uint8_t {
  kLate2025,  // usage without cached tokens, errors of a stream in a field "error:"
  k2026       // cached tokens in usage, all events in "data:"
};

/// As llama.cpp's server (tools/server/README.md and server-task.cpp): the finish_reason in an
/// event without text, usage with `timings`, no /metrics unless it was started with them, and a
/// /tokenize that takes a body without "content" for an empty text.
std::unique_ptr<OtherServer> other_server_llama_cpp(LlamaCppBuild build);

}  // namespace anyslot::bench

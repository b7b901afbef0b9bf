#include "test_other_servers.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace anyslot::bench {

namespace {

using nlohmann::json;

constexpr size_t kTokensPerWord = 2;
constexpr size_t kBlock = 16;
constexpr size_t kContext = 2000;  // tokens

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

std::string data(const json& object) { return "data: " + object.dump(); }

/// The texts of a body of either endpoint, as a template without words of its own joins them.
std::string prompt_of(const json& body) {
  if (body.contains("prompt")) return body["prompt"];
  std::string text;
  for (const json& message : body.at("messages"))
    text += message.at("content").get<std::string>() + "\n";
  return text;
}

struct Prompt {
  json body;
  bool is_chat = false;
  bool breaks = false;  // after two tokens
  int64_t tokens = 0;
  int64_t cached = 0;
  int answer_tokens = 0;

  bool wants_usage() const {
    return body.contains("stream_options") && body["stream_options"].value("include_usage", false);
  }
};

/// What both servers do alike; how they say it is up to them.
class PrefixCachingServer : public OtherServer {
 public:
  std::string answer(const FakeRequest& request) override {
    const json body = json::parse(request.body, nullptr, false);
    if (request.target == "/v1/models") return models();
    if (request.target == "/metrics") return metrics();
    if (request.target == "/tokenize") return tokenize(body);
    if (request.target != "/v1/chat/completions" && request.target != "/v1/completions") {
      return fake_reply("404 Not Found", R"({"detail": "Not Found"})");
    }
    Prompt prompt{.body = body, .is_chat = request.target == "/v1/chat/completions"};
    const std::vector<std::string> words = words_of(prompt_of(body));
    prompt.tokens = static_cast<int64_t>(words.size() * kTokensPerWord);
    if (prompt.tokens + body.value("max_tokens", 16) > static_cast<int64_t>(kContext)) {
      return too_long(prompt);
    }
    prompt.breaks = std::ranges::find(words, "do-break") != words.end();
    prompt.answer_tokens = body.value("max_tokens", 16);
    prompt.cached = count(words);
    return stream(prompt);
  }

  OtherServerCounts counts() const override {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 protected:
  virtual std::string models() = 0;
  virtual std::string metrics() = 0;
  virtual std::string tokenize(const json& body) = 0;
  virtual std::string too_long(const Prompt& prompt) = 0;
  virtual std::string stream(const Prompt& prompt) = 0;

  static json tokens_of(const std::string& text) {
    json tokens = json::array();
    for (size_t i = 0; i < words_of(text).size() * kTokensPerWord; ++i) tokens.push_back(i);
    return tokens;
  }

 private:
  int64_t count(const std::vector<std::string>& words) {
    const std::lock_guard lock(mutex_);
    size_t cached = 0;
    for (const std::vector<std::string>& earlier : seen_) {
      const auto differ = std::ranges::mismatch(words, earlier);
      const auto same = static_cast<size_t>(differ.in1 - words.begin()) * kTokensPerWord;
      cached = std::max(cached, same / kBlock * kBlock);
    }
    seen_.push_back(words);
    counts_.prompt_tokens += static_cast<int64_t>(words.size() * kTokensPerWord);
    counts_.cached_tokens += static_cast<int64_t>(cached);
    return static_cast<int64_t>(cached);
  }

  mutable std::mutex mutex_;
  std::vector<std::vector<std::string>> seen_;
  OtherServerCounts counts_;
};

class Vllm : public PrefixCachingServer {
 protected:
  std::string models() override {
    return fake_reply("200 OK", json{{"object", "list"},
                                     {"data",
                                      {{{"id", "vllm"},
                                        {"object", "model"},
                                        {"created", 1764000000},
                                        {"owned_by", "vllm"},
                                        {"root", "vllm"},
                                        {"parent", nullptr},
                                        {"max_model_len", kContext}}}}}
                                    .dump());
  }

  std::string metrics() override {
    const auto counter = [](const std::string& name, int64_t value) {
      const std::string labels = "{engine=\"0\",model_name=\"vllm\"} ";
      return "# HELP vllm:" + name + " Tokens.\n# TYPE vllm:" + name + " counter\nvllm:" + name +
             "_total" + labels + std::to_string(value) + ".0\nvllm:" + name + "_created" + labels +
             "1.7640000000000001e+09\n";
    };
    return fake_reply("200 OK",
                      counter("prefix_cache_queries", counts().prompt_tokens) +
                          counter("prefix_cache_hits", counts().cached_tokens) +
                          counter("num_preemptions", 3),
                      "text/plain; version=0.0.4; charset=utf-8");
  }

  std::string tokenize(const json& body) override {
    if (!body.contains("prompt"))
      return error("400 Bad Request", "Field required", "BadRequestError", 400);
    const json tokens = tokens_of(body["prompt"]);
    return fake_reply("200 OK", json{{"count", tokens.size()},
                                     {"max_model_len", kContext},
                                     {"tokens", tokens},
                                     {"token_strs", nullptr}}
                                    .dump());
  }

  std::string too_long(const Prompt& prompt) override {
    return error("400 Bad Request",
                 "This model's maximum context length is " + std::to_string(kContext) +
                     " tokens. However, your request has " + std::to_string(prompt.tokens) +
                     " input tokens.",
                 "BadRequestError", 400);
  }

  std::string stream(const Prompt& prompt) override {
    std::vector<std::string> events;
    if (prompt.is_chat)
      events.push_back(chunk(prompt, {{"role", "assistant"}, {"content", ""}}, "", nullptr));
    for (int i = 1; i <= prompt.answer_tokens; ++i) {
      if (prompt.breaks && i == 3) {
        events.push_back(data(error_object("Internal server error", "InternalServerError", 500)));
        events.emplace_back("data: [DONE]");
        return fake_stream(events);
      }
      const json finish = i == prompt.answer_tokens ? json("length") : json(nullptr);
      events.push_back(chunk(prompt, {{"content", " word"}}, " word", finish));
    }
    if (prompt.wants_usage()) {
      json usage = {{"prompt_tokens", prompt.tokens},
                    {"total_tokens", prompt.tokens + prompt.answer_tokens},
                    {"completion_tokens", prompt.answer_tokens}};
      if (prompt.cached > 0) usage["prompt_tokens_details"] = {{"cached_tokens", prompt.cached}};
      json last = head(prompt);
      last["choices"] = json::array();
      last["usage"] = usage;
      events.push_back(data(last));
    }
    events.emplace_back("data: [DONE]");
    return fake_stream(events);
  }

 private:
  static json error_object(const std::string& message, const std::string& type, int code) {
    return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", code}}}};
  }
  static std::string error(const std::string& status, const std::string& message,
                           const std::string& type, int code) {
    return fake_reply(status, error_object(message, type, code).dump());
  }
  static json head(const Prompt& prompt) {
    return {{"id", prompt.is_chat ? "chatcmpl-1" : "cmpl-1"},
            {"object", prompt.is_chat ? "chat.completion.chunk" : "text_completion"},
            {"created", 1764000000},
            {"model", "vllm"}};
  }
  static std::string chunk(const Prompt& prompt, const json& delta, const std::string& text,
                           const json& finish) {
    json choice = {{"index", 0}, {"logprobs", nullptr}, {"finish_reason", finish}};
    if (prompt.is_chat) {
      choice["delta"] = delta;
      choice["token_ids"] = nullptr;
    } else {
      choice["text"] = text;
    }
    if (!finish.is_null()) choice["stop_reason"] = nullptr;
    json object = head(prompt);
    object["choices"] = json::array({choice});
    return data(object);
  }
};

class LlamaCpp : public PrefixCachingServer {
 public:
  explicit LlamaCpp(LlamaCppBuild build) : build_(build) {}

 protected:
  std::string models() override {
    return fake_reply("200 OK",
                      json{{"models", {{{"name", "llama.cpp"}, {"capabilities", {"completion"}}}}},
                           {"object", "list"},
                           {"data",
                            {{{"id", "llama.cpp"},
                              {"object", "model"},
                              {"created", 1764000000},
                              {"owned_by", "llamacpp"},
                              {"meta", {{"n_ctx_train", kContext}}}}}}}
                          .dump());
  }

  std::string metrics() override {
    return error("501 Not Implemented", 501,
                 "This server does not support metrics endpoint. Start it with `--metrics`",
                 "not_supported_error");
  }

  std::string tokenize(const json& body) override {
    const std::string text = body.is_object() ? body.value("content", "") : "";
    return fake_reply("200 OK", json{{"tokens", tokens_of(text)}}.dump());
  }

  std::string too_long(const Prompt& prompt) override {
    return error("400 Bad Request", 400,
                 "request (" + std::to_string(prompt.tokens) +
                     " tokens) exceeds the available context size (" + std::to_string(kContext) +
                     " tokens), try increasing it",
                 "exceed_context_size_error");
  }

  std::string stream(const Prompt& prompt) override {
    std::vector<std::string> events;
    if (prompt.is_chat)
      events.push_back(chunk(prompt, {{"role", "assistant"}, {"content", nullptr}}, "", nullptr));
    for (int i = 1; i <= prompt.answer_tokens; ++i) {
      if (prompt.breaks && i == 3) {
        const json error = error_object(500, "Compute error.", "server_error");
        events.push_back(build_ == LlamaCppBuild::k2026 ? data({{"error", error}})
                                                        : "error: " + error.dump());
        return fake_stream(events);
      }
      events.push_back(chunk(prompt, {{"content", " word"}}, " word", nullptr));
    }
    const bool separate = prompt.is_chat && prompt.wants_usage();
    json last = chunk_object(prompt, json::object(), "", "length");
    if (separate) {
      events.push_back(data(last));
      last["choices"] = json::array();
    }
    last["usage"] = usage(prompt);
    last["timings"] = {{"cache_n", prompt.cached}, {"prompt_n", prompt.tokens - prompt.cached},
                       {"prompt_ms", 30.958},      {"predicted_n", prompt.answer_tokens},
                       {"predicted_ms", 661.064},  {"predicted_per_second", 52.9}};
    events.push_back(data(last));
    events.emplace_back("data: [DONE]");
    return fake_stream(events);
  }

 private:
  static json error_object(int code, const std::string& message, const std::string& type) {
    return {{"code", code}, {"message", message}, {"type", type}};
  }
  static std::string error(const std::string& status, int code, const std::string& message,
                           const std::string& type) {
    return fake_reply(status, json{{"error", error_object(code, message, type)}}.dump());
  }
  json usage(const Prompt& prompt) const {
    json usage = {{"completion_tokens", prompt.answer_tokens},
                  {"prompt_tokens", prompt.tokens},
                  {"total_tokens", prompt.tokens + prompt.answer_tokens}};
    if (build_ == LlamaCppBuild::k2026)
      usage["prompt_tokens_details"] = {{"cached_tokens", prompt.cached}};
    return usage;
  }
  static json chunk_object(const Prompt& prompt, const json& delta, const std::string& text,
                           const json& finish) {
    json choice = {{"finish_reason", finish}, {"index", 0}};
    if (prompt.is_chat) {
      choice["delta"] = delta;
    } else {
      choice["text"] = text;
      choice["logprobs"] = nullptr;
    }
    return {{"choices", json::array({choice})},
            {"created", 1764000000},
            {"id", "chatcmpl-1"},
            {"model", "llama.cpp"},
            {"system_fingerprint", "b9000-0123abc"},
            {"object", prompt.is_chat ? "chat.completion.chunk" : "text_completion"}};
  }
  static std::string chunk(const Prompt& prompt, const json& delta, const std::string& text,
                           const json& finish) {
    return data(chunk_object(prompt, delta, text, finish));
  }

  LlamaCppBuild build_;
};

}  // namespace

std::unique_ptr<OtherServer> other_server_vllm() { return std::make_unique<Vllm>(); }

std::unique_ptr<OtherServer> other_server_llama_cpp(LlamaCppBuild build) {
  return std::make_unique<LlamaCpp>(build);
}

}  // namespace anyslot::bench

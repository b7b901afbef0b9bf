#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "anyslot/status.h"
#include "scores.h"

namespace anyslot::bench {

/// A document of a prompt: a text, or token ids for targets without a tokenizer.
struct WorkloadDocument {
  std::optional<std::string> title;  // unset: the text stands as it is
  std::string text;
  std::string id;
  std::vector<int32_t> token_ids;
};

struct WorkloadMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;
  std::vector<int32_t> token_ids;  // of the content, for targets without a tokenizer
};

/// One request of a workload.
struct WorkloadRequest {
  std::string id;
  std::vector<WorkloadDocument> documents;  // before the first question, in their order
  std::vector<WorkloadMessage> messages;    // the last one is the user's
  /// Of a conversation: the request whose messages and answer stand before these. This one starts
  /// after that one's end, and fails with it.
  std::optional<size_t> follows;
  int max_tokens = 64;
  bool ignore_eos = false;  // the answer has max_tokens tokens
  /// When a trace says so, seconds from the run's begin; unset: by ArrivalOptions.
  std::optional<double> arrival_seconds;
  std::vector<std::string> answers;  // right ones; empty: unknown
  AnswerMetric metric = AnswerMetric::kExactMatch;
  std::vector<std::string> all_classes;
};

enum class WorkloadKind : uint8_t {
  kRandom,        // random documents from a pool
  kRag,           // rows of `anyslot run` and block-bench files: ragqa, 2wiki, tqa, hqa, nq
  kLongBench,     // rows of LongBench
  kChatRag,       // rows of ChatRAG-Bench
  kMooncake,      // Mooncake's traces
  kLongDocument,  // the same long documents in new orders
  kMultiRound     // conversations of several rounds over documents
};

std::string_view workload_name(WorkloadKind kind);
Expected<WorkloadKind> parse_workload(std::string_view name);

/// How documents are drawn from the pool.
enum class DocumentChoice : uint8_t { kUniform, kZipf };
/// In what order they stand in a prompt.
enum class DocumentOrder : uint8_t {
  kNew,   // shuffled for each request
  kFixed  // by their number in the pool, or as in the file
};

struct WorkloadOptions {
  WorkloadKind kind = WorkloadKind::kRandom;
  std::string dataset_path;  // of the kinds that read a file
  std::string dataset_name;  // LongBench: a data set's name where rows have none

  int num_documents = 100;        // in the pool
  int documents_per_prompt = 8;   // all different; ChatRAG-Bench: the first so many
  int document_len = 128;         // tokens of one document
  int question_len = 32;          // tokens of the text after the documents
  double random_range_ratio = 0;  // lengths are uniform within +- this share
  /// Of pool documents. Of data sets, which rows are asked: uniform is all, in the file's order.
  DocumentChoice choice = DocumentChoice::kUniform;
  double zipf = 1.0;                   // rank r is drawn in proportion to r^-zipf
  std::optional<DocumentOrder> order;  // unset: new for pools, fixed for data sets
  int output_len = 32;                 // tokens of an answer; data sets: at most, 0 as the rows say
  bool ignore_eos = true;              // kinds with random texts answer with output_len tokens

  int rounds = 4;             // kMultiRound: questions of one conversation
  double time_scale = 1;      // kMooncake: arrivals at timestamp x this
  int trace_block_len = 512;  // kMooncake: tokens that one hash stands for
};

/// When requests start that no trace has timed.
struct ArrivalOptions {
  double request_rate = std::numeric_limits<double>::infinity();  // per second; inf: all at once
  double burstiness = 1;  // shape of the gamma distributed gaps; 1: a Poisson process
  enum class Ramp : uint8_t { kNone, kLinear, kExponential };
  Ramp ramp = Ramp::kNone;    // instead of request_rate
  double ramp_start_rps = 0;  // at the first request
  double ramp_end_rps = 0;    // at the last one
};

/// What a target says of texts.
struct TextTraits {
  bool takes_text = true;      // else token ids only
  int64_t vocab_size = 0;      // of token ids
  double tokens_per_word = 1;  // of workload_words()
};

/// `num_prompts` requests (fewer only when a trace has fewer), the same for the same seed on every
/// machine. Fails with kInvalidArgument for a file that is not usable, with its line, and for
/// options that fit no request.
Expected<std::vector<WorkloadRequest>> make_workload(const WorkloadOptions& options,
                                                     int num_prompts, uint64_t seed,
                                                     const TextTraits& traits);

/// Start times in seconds, ascending from 0 on, one per request without a time of its own or a
/// predecessor.
std::vector<double> arrival_times(const ArrivalOptions& options, size_t count, uint64_t seed);

/// A sample of the words that random texts are made of, to count its tokens: `count` of them with
/// spaces between.
std::string workload_words(size_t count, uint64_t seed);

}  // namespace anyslot::bench

// The methods are what they say, seen in the bytes of the pool.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>

#include "backend/rope.h"
#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;

constexpr int kLayers = 2;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 16;

// Keys of a document's first `count` tokens: [layer][kv_head][token][head_dim].
std::vector<float> read_keys(Engine& engine, const std::vector<int32_t>& document,
                             std::string_view encoding, int count) {
  internal::EngineCore& core = EngineTestAccess::core(engine);
  std::vector<float> keys;
  run_between_steps(engine, [&](internal::StepLoop& loop) {
    const Digest key = document_key(core.parts().key_domain, encoding, "", document);
    const CacheEntry* entry = loop.cache().find(key);
    ASSERT_NE(entry, nullptr);
    std::vector<std::byte> bytes(core.storage().shape().block_bytes());
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int head = 0; head < kKvHeads; ++head) {
        for (int token = 0; token < count; ++token) {
          const BlockId block = entry->blocks[static_cast<size_t>(token / kBlockSize)];
          ASSERT_TRUE(core.storage().export_block(block, bytes).ok());
          const int offset =
              ((layer * 2 * kKvHeads + head) * kBlockSize + token % kBlockSize) * kHeadDim;
          const size_t end = keys.size();
          keys.resize(end + kHeadDim);
          std::memcpy(keys.data() + end, bytes.data() + offset * sizeof(float),
                      kHeadDim * sizeof(float));
        }
      }
    }
  });
  return keys;
}

// Turns each key by its place in the document, in float64.
std::vector<float> turn_by_place(const std::vector<float>& keys, int count) {
  std::vector<float> turned(keys.size());
  for (size_t at = 0; at < keys.size(); at += kHeadDim) {
    const auto token = static_cast<double>((at / kHeadDim) % static_cast<size_t>(count));
    for (size_t j = 0; j < kHeadDim / 2; ++j) {
      const double angle = token * std::pow(10000.0, -2.0 * static_cast<double>(j) / kHeadDim);
      const double x = double{keys[at + j]};
      const double y = double{keys[at + j + kHeadDim / 2]};
      turned[at + j] = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
      turned[at + j + kHeadDim / 2] = static_cast<float>(y * std::cos(angle) + x * std::sin(angle));
    }
  }
  return turned;
}

Request make_request(const std::vector<int32_t>& document, Method method) {
  Request request;
  request.segments = {document_segment(random_tokens(21, 1)), document_segment(document),
                      text_segment({5, 6, 7})};
  request.method = method;
  return request;
}

TEST(PoolContents, MepicStoresUnturnedKeysAndLazyTurnsThemByTheirPlaceInTheDocument) {
  const TemporaryModel model({});
  Engine engine = open_engine(float32_config(model.path()));
  const auto document = random_tokens(20, 2);
  run(engine, make_request(document, Method::kLazy));
  run(engine, make_request(document, Method::kMepic));
  const auto raw = read_keys(engine, document, "alone, raw", 20);
  const auto turned = read_keys(engine, document, "alone, turned", 20);
  ASSERT_EQ(raw.size(), static_cast<size_t>(kLayers * kKvHeads * 20 * kHeadDim));
  EXPECT_LT(relative_difference(turned, turn_by_place(raw, 20)), 1e-5);
  EXPECT_GT(relative_difference(turned, raw), 0.1);
}

TEST(PoolContents, BlockCopiesExactlyTheDocumentBlocksAndLazyNone) {
  for (const Method method : {Method::kLazy, Method::kMepic, Method::kBlock}) {
    const TemporaryModel model({});
    Engine engine = open_engine(float32_config(model.path()));
    const auto document = random_tokens(50, 2);
    run(engine, make_request(document, method));
    const int64_t after_one = engine.stats().blocks_copied_total;
    run(engine, make_request(document, method));
    EXPECT_EQ(after_one, method == Method::kBlock ? 2 + 4 : 0);
    EXPECT_EQ(engine.stats().blocks_copied_total, 2 * after_one);
  }
}

// A recycled block keeps what its earlier owner wrote, at worst what a broken request left behind.
TEST(PoolContents, WhatAnEarlierOwnerLeftHasNoEffect) {
  const TemporaryModel model({});
  EngineConfig config = float32_config(model.path());
  config.kv_cache_bytes = 64 * 8192;
  for (const Method method : kAllMethods) {
    Engine clean = open_engine(config);
    Engine dirty = open_engine(config);
    internal::EngineCore& core = EngineTestAccess::core(dirty);
    run_between_steps(dirty, [&](internal::StepLoop&) {
      const std::vector<float> nans(core.storage().shape().block_bytes() / sizeof(float),
                                    std::nanf(""));
      for (BlockId block = 0; block < core.storage().shape().num_blocks; ++block) {
        ASSERT_TRUE(core.storage().import_block(block, std::as_bytes(std::span(nans))).ok());
      }
    });
    Request request = make_request(random_tokens(37, 2), method);
    request.sampling.max_tokens = 20;
    request.prompt_logits = true;
    const Answer expected = run(clean, request);
    const Answer answer = run(dirty, request);
    EXPECT_EQ(answer.token_ids, expected.token_ids) << method_name(method) << " " << answer.error;
    EXPECT_EQ(answer.prompt_logits, expected.prompt_logits) << method_name(method);
  }
}

TEST(PoolContents, ADocumentSharedByEightRequestsIsReadOnceAStep) {
  const TemporaryModel model({});
  Engine engine = open_engine(float32_config(model.path()));
  const auto document = random_tokens(512, 2);
  const auto tokens_read = [&](int count) {
    run(engine, make_request(document, Method::kLazy));
    const Stats before = engine.stats();
    std::vector<Stream> streams;
    // One call holds the engine thread until all are queued, so that they decode together.
    run_between_steps(engine, [&](internal::StepLoop&) {
      for (int i = 0; i < count; ++i) {
        Request request = make_request(document, Method::kLazy);
        request.segments.back() = text_segment({5, 6, 7 + i});
        request.sampling.max_tokens = 8;
        streams.push_back(submit(engine, request));
      }
    });
    for (Stream& stream : streams) wait_for(stream);
    const Stats after = engine.stats();
    EXPECT_EQ(after.steps_total - before.steps_total, 8);
    return after.kv_tokens_read_total - before.kv_tokens_read_total;
  };
  // Each step reads the preamble and the document once, and every request's own text.
  const int64_t own_text = 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10;
  EXPECT_EQ(tokens_read(1), 8 * (21 + 512) + own_text);
  EXPECT_EQ(tokens_read(8), 8 * (21 + 512) + 8 * own_text);
}

}  // namespace
}  // namespace anyslot

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "anyslot/engine.h"
#include "errors.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// A document of the cache, as the API tells of it.
nlohmann::json cached_document_json(const CachedDocument& document);

/// Registers the documents of one request and answers when the last one is ready, or the first one
/// has failed. They are with the engine a few at a time, in their order, so that requests that come
/// later wait for few of them only. Ends when the client leaves.
class Registration : public std::enable_shared_from_this<Registration> {
 public:
  static void start(ServingContext& context, Call call);

  Registration(ServingContext& context, Call call);

 private:
  void enter();
  ApiExpected<std::vector<Segment>> parse();
  void begin();
  void go_on();
  void hand_in(size_t index);
  void keep(size_t index, std::function<void()> give_up);
  void add(size_t index, const Expected<CachedDocument>& document);
  void fail(size_t index, ApiError error);
  void finish(HttpReply reply);
  void leave();
  /// Runs `work` on the I/O thread; what it throws ends this.
  template <typename Work>
  void guard(Work work);

  ServingContext& context_;  // perhaps gone once this has ended
  Call call_;
  DocumentOptions options_;
  std::optional<ApiExpected<std::vector<Segment>>> parsed_;  // on its way to begin()

  std::atomic<bool> ended_{false};  // written on the I/O thread; so are those that follow
  std::vector<Segment> segments_;
  std::vector<nlohmann::json> documents_;
  std::vector<std::function<void()>> give_up_;
  size_t num_given_ = 0;  // to the engine
  size_t num_ended_ = 0;
  bool handing_in_ = false;
};

}  // namespace anyslot::server

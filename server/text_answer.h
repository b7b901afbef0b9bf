#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "answer_format.h"

namespace anyslot::server {

/// For APIs whose answers are one text.
class TextAnswer : public AnswerWriter {
 public:
  void add(const Event& event) final;
  size_t whole_bytes(const Usage& usage) const final;
  std::string whole(const Usage& usage) const final;

 protected:
  /// What ended the answer.
  struct End {
    FinishReason reason = FinishReason::kStop;
    std::optional<std::string> stop;  // the string of the request that did
  };
  static End end_of(const Event& event);

  virtual nlohmann::json whole_json(const std::string& text, const End& end,
                                    const Usage& usage) const = 0;

 private:
  std::string text_;
  End end_;
};

/// An event that is named after the type that its data tell.
void send_typed(ResponseSink& sink, const nlohmann::json& data);

}  // namespace anyslot::server

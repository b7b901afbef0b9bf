#include "text/token_decoder_reader.h"

#include <utility>

#include "text/json_fields.h"
#include "text/pattern_reader.h"
#include "text/utf8.h"

namespace anyslot {

using nlohmann::json;

namespace {

class DecoderReader {
 public:
  Expected<TokenDecoder::Options> read(const json& object, const std::string& where) {
    if (Status status = read_step(object, where, true); !status.ok()) return status;
    return std::move(options_);
  }

 private:
  enum class Stage : uint8_t { kTokens, kBytes, kWhole, kEnd };

  Status read_step(const json& object, const std::string& where, bool may_be_sequence) {
    JsonFields fields(object, where);
    const std::string type = fields.get_string("type");
    if (!fields.ok()) return fields.status();
    if (type == "Sequence" && may_be_sequence) return read_sequence(fields);
    if (type == "ByteLevel") {
      if (stage_ != Stage::kTokens || !options_.steps.empty()) return misplaced(fields, type);
      options_.byte_level = true;
      stage_ = Stage::kEnd;
      fields.ignore({"add_prefix_space", "trim_offsets", "use_regex"});  // of encoding
    } else if (type == "ByteFallback") {
      if (stage_ != Stage::kTokens) return misplaced(fields, type);
      options_.byte_fallback = true;
      stage_ = Stage::kBytes;
    } else if (type == "Fuse") {
      if (stage_ > Stage::kBytes) return misplaced(fields, type);
      stage_ = Stage::kWhole;
    } else if (type == "Strip") {
      return read_strip(fields);
    } else if (type == "Replace" || type == "Metaspace") {
      if (stage_ != Stage::kTokens) return misplaced(fields, type);
      type == "Replace" ? read_replace(fields) : read_metaspace(fields);
    } else {
      fields.fail("type", unsupported_type(type,
                                           "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, "
                                           "Strip, or a Sequence of them"));
    }
    return fields.finish();
  }

  static Status misplaced(JsonFields& fields, const std::string& type) {
    fields.fail("type", "'" + type +
                            "' is not supported at this place: ByteLevel stands alone, and other "
                            "steps come in the order Replace, Strip or Metaspace, ByteFallback, "
                            "Fuse, Strip");
    return fields.status();
  }

  Status read_sequence(JsonFields& fields) {
    const json& entries = fields.get_array("decoders");
    if (Status status = fields.finish(); !status.ok()) return status;
    for (size_t i = 0; i < entries.size(); ++i) {
      Status status = read_step(entries[i], indexed(fields.name("decoders"), i), false);
      if (!status.ok()) return status;
    }
    return {};
  }

  void read_replace(JsonFields& fields) {
    std::string content = fields.get_string("content");
    Expected<Pattern> pattern = read_pattern(fields);
    if (!pattern) return fields.fail(pattern.status());
    options_.steps.emplace_back(ReplaceTokenStep{*std::move(pattern), std::move(content)});
  }

  static std::string get_character(JsonFields& fields, const std::string& key) {
    std::string text = fields.get_string(key);
    if (fields.ok() && !is_one_character(text)) fields.fail(key, "must be one character");
    return text;
  }

  void read_metaspace(JsonFields& fields) {
    MetaspaceTokenStep step{.replacement = get_character(fields, "replacement")};
    const bool has_scheme = fields.find("prepend_scheme") != nullptr;
    step.drops_first = fields.bool_or("add_prefix_space", true) &&
                       (!has_scheme || fields.get_string("prepend_scheme") != "never");
    fields.ignore({"prepend_scheme", "str_rep", "split"});  // of encoding, or said already
    options_.steps.emplace_back(std::move(step));
  }

  Status read_strip(JsonFields& fields) {
    StripTokenStep step{.character = get_character(fields, "content")};
    const int64_t start = fields.get_integer("start");
    const int64_t stop = fields.get_integer("stop");
    if (start < 0) fields.fail("start", "must not be negative");
    if (stop < 0) fields.fail("stop", "must not be negative");
    if (Status status = fields.finish(); !status.ok()) return status;
    step.start = static_cast<size_t>(start);
    step.stop = static_cast<size_t>(stop);
    if (stage_ == Stage::kTokens) {
      options_.steps.emplace_back(std::move(step));
      return {};
    }
    if (stage_ != Stage::kWhole) return misplaced(fields, "Strip");
    if (stop != 0) {
      fields.fail("stop", "must be 0 behind Fuse: the end of a text is not known while it grows");
      return fields.status();
    }
    options_.strip = std::move(step);
    stage_ = Stage::kEnd;
    return {};
  }

  TokenDecoder::Options options_;
  Stage stage_ = Stage::kTokens;
};

}  // namespace

Expected<TokenDecoder::Options> read_token_decoder(const json& object, const std::string& where) {
  return DecoderReader().read(object, where);
}

}  // namespace anyslot

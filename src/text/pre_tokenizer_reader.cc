#include "text/pre_tokenizer_reader.h"

#include <utility>

#include "text/json_fields.h"

namespace anyslot {

using nlohmann::json;

namespace {

// The expression that ByteLevel applies by itself when use_regex is set (GPT-2's).
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class PreTokenizerReader {
 public:
  Expected<PreTokenizer> read(const json& object, const std::string& where) {
    if (Status status = read_step(object, where, true); !status.ok()) return status;
    if (!byte_level_) {
      return failed_precondition(where + ": has no ByteLevel; only byte-level BPE is supported");
    }
    return PreTokenizer(std::move(steps_));
  }

 private:
  Status read_step(const json& object, const std::string& where, bool may_be_sequence) {
    JsonFields fields(object, where);
    const std::string type = fields.get_string("type");
    if (!fields.ok()) return fields.status();
    if (byte_level_) {
      return failed_precondition(where + ": a step behind ByteLevel ('" + type +
                                 "') is not supported");
    }
    if (type == "Sequence" && may_be_sequence) return read_sequence(fields);
    if (type == "Split") {
      read_split(fields);
    } else if (type == "ByteLevel") {
      read_byte_level(fields);
    } else {
      fields.fail("type", unsupported_type(type, "a Sequence of Split and ByteLevel"));
    }
    return fields.finish();
  }

  Status read_sequence(JsonFields& fields) {
    const json& entries = fields.get_array("pretokenizers");
    if (Status status = fields.finish(); !status.ok()) return status;
    for (size_t i = 0; i < entries.size(); ++i) {
      const std::string where = indexed(fields.name("pretokenizers"), i);
      if (Status status = read_step(entries[i], where, false); !status.ok()) return status;
    }
    return {};
  }

  void read_split(JsonFields& fields) {
    const std::string behavior = fields.get_string("behavior");
    if (fields.ok() && behavior != "Isolated") {
      fields.fail("behavior", unsupported_type(behavior, "Isolated"));
    }
    if (fields.bool_or("invert", false)) fields.fail("invert", "must be false");
    JsonFields pattern(fields.get_object("pattern"), fields.name("pattern"));
    const std::string regex = pattern.get_string("Regex");
    fields.fail(pattern.finish());
    if (fields.ok()) add_split(regex, fields);
  }

  void read_byte_level(JsonFields& fields) {
    byte_level_ = true;
    if (fields.bool_or("add_prefix_space", true)) steps_.emplace_back(PrefixSpaceStep{});
    if (fields.bool_or("use_regex", true)) add_split(kByteLevelPattern, fields);
    fields.ignore({"trim_offsets"});  // about offsets, which nobody asks for here
  }

  void add_split(std::string_view pattern, JsonFields& fields) {
    Expected<Regex> regex = Regex::compile(pattern);
    if (!regex) return fields.fail("pattern", regex.status().message());
    steps_.emplace_back(SplitStep{*std::move(regex)});
  }

  std::vector<PreTokenizer::Step> steps_;
  bool byte_level_ = false;
};

}  // namespace

Expected<PreTokenizer> read_pre_tokenizer(const json& object, const std::string& where) {
  return PreTokenizerReader().read(object, where);
}

}  // namespace anyslot

#include "text/pre_tokenizer_reader.h"

#include <array>
#include <utility>

#include "text/json_fields.h"
#include "text/pattern_reader.h"
#include "text/utf8.h"

namespace anyslot {

using nlohmann::json;

namespace {

SplitBehavior read_behavior(JsonFields& fields) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  const std::string given = fields.get_string("behavior");
  for (const auto& [name, behavior] : kBehaviors) {
    if (given == name) return behavior;
  }
  fields.fail("behavior", unsupported_type(given,
                                           "Isolated, Removed, MergedWithPrevious, MergedWithNext, "
                                           "Contiguous"));
  return SplitBehavior::kIsolated;
}

MetaspaceStep::Prepend read_prepend(JsonFields& fields) {
  using Prepend = MetaspaceStep::Prepend;
  // Older files have add_prefix_space in the place of prepend_scheme.
  const bool prefix = fields.bool_or("add_prefix_space", true);
  if (fields.find("prepend_scheme") == nullptr) return prefix ? Prepend::kAlways : Prepend::kNever;
  const std::string scheme = fields.get_string("prepend_scheme");
  if (scheme == "always") return prefix ? Prepend::kAlways : Prepend::kNever;
  if (scheme == "first") return Prepend::kFirst;
  if (scheme != "never") {
    fields.fail("prepend_scheme", unsupported_type(scheme, "always, first, never"));
  }
  return Prepend::kNever;
}

class PreTokenizerReader {
 public:
  Expected<PreTokenizerFields> read(const json& object, const std::string& where) {
    if (Status status = read_step(object, where, true); !status.ok()) return status;
    return std::move(read_);
  }

 private:
  Status read_step(const json& object, const std::string& where, bool may_be_sequence) {
    JsonFields fields(object, where);
    const std::string type = fields.get_string("type");
    if (!fields.ok()) return fields.status();
    if (read_.byte_level) {
      return failed_precondition(where + ": a step behind ByteLevel ('" + type +
                                 "') is not supported");
    }
    if (type == "Sequence" && may_be_sequence) return read_sequence(fields);
    if (type == "Split") {
      read_split(fields);
    } else if (type == "ByteLevel") {
      read_byte_level(fields);
    } else if (type == "Metaspace") {
      read_metaspace(fields);
    } else if (type == "Digits") {
      const bool each = fields.bool_or("individual_digits", false);
      add(KindSplitStep{CharacterKind::kNumeric,
                        each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous});
    } else if (type == "Punctuation") {
      const bool given = fields.find("behavior") != nullptr;
      add(KindSplitStep{CharacterKind::kPunctuation,
                        given ? read_behavior(fields) : SplitBehavior::kIsolated});
    } else if (type == "WhitespaceSplit") {
      add(KindSplitStep{CharacterKind::kWhiteSpace, SplitBehavior::kRemoved});
    } else if (type == "Whitespace") {
      add(WordsStep{});
    } else {
      fields.fail("type",
                  unsupported_type(type,
                                   "ByteLevel, Digits, Metaspace, Punctuation, Split, Whitespace, "
                                   "WhitespaceSplit, or a Sequence of them"));
    }
    return fields.finish();
  }

  void add(PreTokenizer::Step step) { read_.steps.push_back(std::move(step)); }

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
    const SplitBehavior behavior = read_behavior(fields);
    const bool invert = fields.bool_or("invert", false);
    Expected<Pattern> pattern = read_pattern(fields);
    if (!pattern) return fields.fail(pattern.status());
    add(SplitStep{*std::move(pattern), behavior, invert});
  }

  void read_byte_level(JsonFields& fields) {
    read_.byte_level = true;
    if (fields.bool_or("add_prefix_space", true)) add(PrefixSpaceStep{});
    if (fields.bool_or("use_regex", true)) {
      Expected<Regex> regex = Regex::compile(kGpt2Words);
      if (!regex) return fields.fail(regex.status());
      add(SplitStep{Pattern(*std::move(regex))});
    }
    fields.ignore({"trim_offsets"});  // about offsets, which nobody asks for here
  }

  void read_metaspace(JsonFields& fields) {
    MetaspaceStep step;
    step.replacement = fields.get_string("replacement");
    step.prepend = read_prepend(fields);
    step.split = fields.bool_or("split", true);
    fields.ignore({"str_rep"});  // the replacement once more
    if (fields.ok() && !is_one_character(step.replacement)) {
      fields.fail("replacement", "must be one character");
    }
    add(std::move(step));
  }

  PreTokenizerFields read_;
};

}  // namespace

Expected<PreTokenizerFields> read_pre_tokenizer(const json& object, const std::string& where) {
  return PreTokenizerReader().read(object, where);
}

}  // namespace anyslot

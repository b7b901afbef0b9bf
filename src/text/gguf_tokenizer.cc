#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "text/bpe_merges.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/json_fields.h"
#include "text/utf8.h"

namespace anyslot {

namespace {

/// tokenizer.ggml.token_type.
enum class TokenType : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

Digest fingerprint_of(const GgufTokenizer& source) {
  DigestBuilder digest;
  digest.add(source.model).add(source.pre);
  for (const auto texts : {source.tokens, source.merges}) {
    digest.add(std::ssize(texts));
    for (const std::string_view text : texts) digest.add(text);
  }
  for (const int64_t type : source.token_type) digest.add(type);
  digest.add(std::ssize(source.scores));
  for (const double score : source.scores) digest.add(std::bit_cast<int64_t>(score));
  for (const auto& id : {source.bos_token_id, source.eos_token_id, source.unknown_token_id}) {
    digest.add(id.value_or(-1));
  }
  for (const auto& flag : {source.add_bos_token, source.add_eos_token, source.add_space_prefix}) {
    digest.add(int64_t{flag ? (*flag ? 1 : 0) : -1});
  }
  digest.add(int64_t{source.of_phi3 ? 1 : 0});
  return digest.finish();
}

class Reader {
 public:
  explicit Reader(const GgufTokenizer& source) : source_(source) {}

  Expected<TokenizerDescription> read() {
    out_.source = source_.where + ": its tokenizer as tokenizer.json";
    if (source_.model == "gpt2") {
      read_byte_level();
    } else if (source_.model == "llama") {
      read_sentencepiece();
    } else {
      fail("model",
           unsupported(source_.model, "gpt2, a byte-level BPE; llama, the BPE of SentencePiece"));
    }
    if (!status_.ok()) return status_;
    out_.fingerprint = fingerprint_of(source_);
    return std::move(out_);
  }

 private:
  void fail(std::string_view key, const std::string& problem) {
    if (status_.ok()) {
      status_ = failed_precondition(source_.where + ": tokenizer.ggml." + std::string(key) + ": " +
                                    problem);
    }
  }

  void read_byte_level() {
    const GgufPreTokenizer* pre = find_pre_tokenizer();
    if (pre == nullptr) return;
    out_.byte_level = true;
    out_.ignore_merges = pre->ignore_merges;
    out_.decoder.byte_level = true;
    if (pre->composes) out_.normalizer.emplace_back(UnicodeFormStep{UnicodeForm::kNfc});
    if (source_.add_space_prefix.value_or(false))
      out_.pre_tokenizer.emplace_back(PrefixSpaceStep{});
    Expected<std::vector<PreTokenizer::Step>> steps = split_steps(*pre);
    if (!steps) return fail("pre", steps.status().message());
    std::ranges::move(*steps, std::back_inserter(out_.pre_tokenizer));
    add_tokens();
    add_merges();
    add_ends(pre->adds_bos);
  }

  void read_sentencepiece() {
    const std::string metaspace = "\u2581";
    const bool has_prefix = source_.add_space_prefix.value_or(true);
    if (has_prefix) out_.normalizer.emplace_back(PrependStep{metaspace});
    out_.normalizer.emplace_back(ReplaceStep{Pattern(std::string(" ")), metaspace});
    out_.decoder.steps.emplace_back(ReplaceTokenStep{Pattern(metaspace), " "});
    out_.decoder.byte_fallback = true;
    if (has_prefix) out_.decoder.strip = {.character = " ", .start = 1};
    out_.byte_fallback = true;
    out_.fuse_unknown = true;
    add_tokens();
    add_unknown();
    if (source_.merges.empty()) {
      add_scores();
    } else {
      add_merges();
    }
    add_ends(true);
  }

  const GgufPreTokenizer* find_pre_tokenizer() {
    std::string names;
    for (const GgufPreTokenizer& pre : gguf_pre_tokenizers()) {
      if (pre.name == source_.pre) return &pre;
      if (!names.empty()) names += ", ";
      names += pre.name;
    }
    fail("pre", unsupported(source_.pre, names));
    return nullptr;
  }

  static std::string unsupported(std::string_view name, const std::string& supported) {
    if (name.empty()) return "this key is missing (supported: " + supported + ")";
    const bool printable = !find_invalid_utf8(name);
    return unsupported_type(printable ? std::string(name) : "?", supported);
  }

  void check_size(std::string_view key, size_t size) {
    if (size == source_.tokens.size()) return;
    fail(key, "has " + std::to_string(size) + " elements for " +
                  std::to_string(source_.tokens.size()) + " tokens");
  }

  void add_tokens() {
    if (source_.tokens.empty()) fail("tokens", "this key is missing");
    check_size("token_type", source_.token_type.size());
    if (!status_.ok()) return;
    const auto last = std::ranges::find(source_.token_type.rbegin(), source_.token_type.rend(),
                                        static_cast<int64_t>(TokenType::kNormal));
    end_of_pieces_ = static_cast<size_t>(source_.token_type.rend() - last);
    for (size_t id = 0; id < source_.tokens.size() && status_.ok(); ++id) add_token(id);
  }

  void add_token(size_t id) {
    switch (static_cast<TokenType>(source_.token_type[id])) {
      case TokenType::kNormal:
        pieces_.push_back(static_cast<int32_t>(id));
        return add_to_vocabulary(id, {.name = name(id), .in_model = true});
      case TokenType::kUnknown:
      case TokenType::kControl:
        return add_added_token(id, {.name = name(id), .special = true});
      case TokenType::kUserDefined:
        // What was added to a finished vocabulary of SentencePiece stands behind its own symbols.
        return add_added_token(
            id, {.name = name(id), .in_model = !out_.byte_level && id < end_of_pieces_});
      case TokenType::kUnused:  // fills a gap between ids: no text becomes it
        return;
      case TokenType::kByte:
        if (!out_.byte_level) return add_to_vocabulary(id, {.name = name(id), .in_model = true});
    }
    fail("token_type",
         at(id) + " is " + std::to_string(source_.token_type[id]) + ", which is not supported");
  }

  std::string name(size_t id) const { return std::string(source_.tokens[id]); }

  void add_to_vocabulary(size_t id, Vocabulary::Token token) {
    const Status status = out_.vocabulary.add(static_cast<int64_t>(id), std::move(token));
    if (!status.ok()) fail("tokens", at(id) + ": " + status.message());
  }

  void add_added_token(size_t id, Vocabulary::Token token) {
    if (token.name.empty()) return fail("tokens", at(id) + " is empty");
    out_.added_tokens.push_back({.id = static_cast<int32_t>(id),
                                 .content = token.name,
                                 .rstrip = takes_white_space(token.name)});
    add_to_vocabulary(id, std::move(token));
  }

  /// Of Phi 3's tokens all but these take what stands behind them along: the line's end behind
  /// <|user|> is none of the prompt.
  bool takes_white_space(std::string_view name) const {
    return source_.of_phi3 && !out_.byte_level && name != "<unk>" && name != "<s>" &&
           name != "<|endoftext|>";
  }

  void add_merges() {
    out_.merges.reserve(source_.merges.size());
    for (size_t i = 0; i < source_.merges.size() && status_.ok(); ++i) add_merge_at(i);
  }

  void add_merge_at(size_t i) {
    if (find_invalid_utf8(source_.merges[i])) return fail("merges", at(i) + " is not valid UTF-8");
    const std::optional<MergeNames> names = split_merge(source_.merges[i]);
    if (!names) return fail("merges", at(i) + R"( must be "left right")");
    const Status status = add_merge(*names, out_);
    if (!status.ok()) fail("merges", at(i) + ": " + status.message());
  }

  void add_scores() {
    check_size("scores", source_.scores.size());
    const auto bad =
        std::ranges::find_if_not(source_.scores, [](double x) { return std::isfinite(x); });
    if (bad != source_.scores.end()) {
      fail("scores",
           at(static_cast<size_t>(bad - source_.scores.begin())) + " is no finite number");
    }
    if (!status_.ok()) return;
    const Status status = add_merges_of_scores(pieces_, source_.scores, out_);
    if (!status.ok()) fail("scores", status.message());
  }

  /// What no piece and no bytes can write.
  void add_unknown() {
    const auto unknown =
        std::ranges::find(source_.token_type, static_cast<int64_t>(TokenType::kUnknown));
    std::optional<int64_t> id = source_.unknown_token_id;
    if (!id && unknown != source_.token_type.end()) id = unknown - source_.token_type.begin();
    if (!id || !status_.ok()) return;
    out_.unknown_id = known("unknown_token_id", id);
  }

  int32_t known(std::string_view key, std::optional<int64_t> id) {
    const bool is_token = id && *id >= 0 && *id < out_.vocabulary.size() &&
                          out_.vocabulary.find(static_cast<int32_t>(*id)) != nullptr;
    if (!is_token) fail(key, "names no token, but one is needed");
    return is_token ? static_cast<int32_t>(*id) : 0;
  }

  void add_ends(bool adds_bos) {
    if (!status_.ok()) return;
    if (source_.add_bos_token.value_or(adds_bos)) {
      out_.post_processor.prefix_ids = {known("bos_token_id", source_.bos_token_id)};
    }
    if (source_.add_eos_token.value_or(false)) {
      out_.post_processor.suffix_ids = {known("eos_token_id", source_.eos_token_id)};
    }
  }

  static std::string at(size_t index) { return "[" + std::to_string(index) + "]"; }

  const GgufTokenizer& source_;
  Status status_;
  TokenizerDescription out_;
  std::vector<int32_t> pieces_;  // the ordinary tokens
  size_t end_of_pieces_ = 0;     // the last one's id plus one
};

}  // namespace

std::string_view GgufTokenizer::token_name(std::optional<int64_t> id) const {
  if (!id || *id < 0 || static_cast<uint64_t>(*id) >= tokens.size()) return {};
  return tokens[static_cast<size_t>(*id)];
}

Expected<TokenizerDescription> read_gguf_tokenizer(const GgufTokenizer& source) {
  return Reader(source).read();
}

}  // namespace anyslot

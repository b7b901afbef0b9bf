#include "text/tokenizer_parts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/byte_level.h"
#include "text/utf8.h"

namespace anyslot {

namespace {

constexpr char32_t kMetaspace = 0x2581;

bool occurs_in_utf8(int byte) { return byte != 0xC0 && byte != 0xC1 && byte <= 0xF4; }

/// The name of the token of a byte: in the byte-level alphabet, or as <0x0A>.
std::string byte_name(bool byte_level, int byte) {
  std::string name;
  if (byte_level) {
    append_code_point(name, byte_to_alphabet(static_cast<uint8_t>(byte)));
    return name;
  }
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return name + "<0x" + kDigits[byte / 16] + kDigits[byte % 16] + ">";
}

/// Whether an added token is looked for in content too: where it is text by its author's own
/// account, and no mark that could be smuggled in. That is white space, and the symbols that a
/// vocabulary of SentencePiece holds besides its pieces and does not call special.
bool may_stand_anywhere(const AddedToken& token, const TokenizerDescription& description) {
  const Vocabulary::Token* entry = description.vocabulary.find(token.id);
  if (entry->special) return false;
  if (entry->in_model && !description.byte_level) return true;
  std::string_view rest = token.content;
  while (!rest.empty() && is_white_space(first_code_point(rest))) {
    rest.remove_prefix(next_utf8_unit(rest).size);
  }
  return rest.empty();
}

class PartsMaker {
 public:
  explicit PartsMaker(TokenizerDescription description) : from_(std::move(description)) {}

  Expected<TokenizerParts> make() {
    parts_.fingerprint = from_.fingerprint;
    parts_.normalizer = Normalizer(std::move(from_.normalizer));
    parts_.pre_tokenizer = PreTokenizer(std::move(from_.pre_tokenizer));
    parts_.decoder = TokenDecoder(std::move(from_.decoder));
    parts_.post_processor = std::move(from_.post_processor);
    Status status = make_added_tokens();
    if (status.ok()) status = decode_names();
    if (status.ok()) status = make_model();
    if (!status.ok()) return failed_precondition(from_.source + status.message());
    parts_.vocabulary = std::move(from_.vocabulary);
    return std::move(parts_);
  }

 private:
  Status make_added_tokens() {
    for (AddedToken& token : from_.added_tokens) {
      token.anywhere = may_stand_anywhere(token, from_);
      if (!token.normalized) continue;
      Expected<MarkedText> content = parts_.normalizer.run(token.content);
      if (!content) {
        return failed_precondition(".added_tokens: '" + token.content +
                                   "': " + content.status().message());
      }
      if (content->text.empty()) {
        return failed_precondition(".added_tokens: the normalizer makes nothing of '" +
                                   token.content + "'");
      }
      token.content = std::move(content->text);
    }
    parts_.added_tokens = AddedTokens(std::move(from_.added_tokens));
    return {};
  }

  Status decode_names() {
    for (int32_t id = 0; id < from_.vocabulary.size(); ++id) {
      const Vocabulary::Token* token = from_.vocabulary.find(id);
      if (token == nullptr) continue;
      // Hugging Face reads these too as if they were bytes, and breaks those with letters beyond
      // ASCII.
      if (parts_.decoder.byte_level() && (token->special || !token->in_model)) {
        from_.vocabulary.set_text(id, token->name, false);
        continue;
      }
      Expected<TokenDecoder::Text> text = parts_.decoder.text_of(token->name, false);
      if (text && parts_.decoder.first_differs()) {
        const Expected<TokenDecoder::Text> first = parts_.decoder.text_of(token->name, true);
        if (!first) text = first.status();
      }
      if (!text) {
        return failed_precondition(".decoder: token '" + token->name +
                                   "': " + text.status().message());
      }
      from_.vocabulary.set_text(id, std::move(text->bytes), text->is_byte);
    }
    return {};
  }

  Status make_model() {
    Bpe::Options options;
    options.by_character = !from_.byte_level;
    options.ignore_merges = from_.ignore_merges;
    options.unknown_id = from_.unknown_id;
    options.fuse_unknown = from_.fuse_unknown;
    options.byte_ids.fill(-1);
    Status status;
    if (from_.byte_level || from_.byte_fallback) status = read_bytes(options.byte_ids);
    if (!status.ok()) return status;
    if (!from_.byte_level && !from_.unknown_id && !from_.byte_fallback) {
      return failed_precondition(
          ".model.unk_token: must be given: without it and without byte_fallback characters that "
          "are not in the vocabulary would be left out");
    }
    read_tokens(options);
    // No plain text becomes a special token, whatever the merges say.
    std::erase_if(from_.merges, [&](const BpeMerge& merge) {
      return from_.vocabulary.find(merge.result)->special;
    });
    options.joined_to_metaspace = joined_to_metaspace(options);
    options.merges = std::move(from_.merges);
    parts_.model = Bpe(std::move(options));
    return {};
  }

  Status read_bytes(std::array<int32_t, 256>& ids) const {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string name = byte_name(from_.byte_level, byte);
      const int32_t id = from_.vocabulary.id(name).value_or(-1);
      const Vocabulary::Token* token = from_.vocabulary.find(id);
      if (token != nullptr && !token->in_model) token = nullptr;
      // What byte fallback cannot write is unknown.
      const bool needed = from_.byte_level || !from_.unknown_id;
      if (token == nullptr && needed && occurs_in_utf8(byte)) {
        return failed_precondition(".model.vocab: '" + name + "', the token of byte " +
                                   std::to_string(byte) + ", is missing");
      }
      if (token != nullptr && token->special) {
        return failed_precondition(".model.vocab: '" + name +
                                   "' is the token of a byte and cannot be special");
      }
      ids[byte] = token == nullptr ? -1 : id;
    }
    return {};
  }

  void read_tokens(Bpe::Options& options) const {
    for (int32_t id = 0; id < from_.vocabulary.size(); ++id) {
      const Vocabulary::Token* token = from_.vocabulary.find(id);
      if (token == nullptr || !token->in_model || token->special) continue;
      if (options.by_character && is_one_character(token->name)) {
        options.characters.set(first_code_point(token->name), id);
      }
      if (!options.ignore_merges) continue;
      if (options.by_character) {
        options.whole_words.emplace(token->name, id);
      } else if (std::optional<std::string> bytes = alphabet_to_bytes(token->name)) {
        options.whole_words.emplace(*std::move(bytes), id);
      }
    }
  }

  /// See Bpe::Options. A merge reaches across the place between two characters when its left token
  /// ends with the one and its right token begins with the other.
  std::optional<std::vector<char32_t>> joined_to_metaspace(const Bpe::Options& options) const {
    if (!options.by_character || options.characters.find(kMetaspace) == CharacterTable::kNone) {
      return std::nullopt;
    }
    std::vector<bool> stands_for_others(static_cast<size_t>(from_.vocabulary.size()));
    for (const int32_t id : options.byte_ids) {
      if (id >= 0) stands_for_others[id] = true;
    }
    if (options.unknown_id) stands_for_others[*options.unknown_id] = true;
    std::vector<char32_t> joined;
    for (const BpeMerge& merge : from_.merges) {
      const std::string& right = from_.vocabulary.find(merge.right)->name;
      if (stands_for_others[merge.left] || stands_for_others[merge.right]) return std::nullopt;
      if (first_code_point(right) != kMetaspace) continue;
      joined.push_back(last_code_point(from_.vocabulary.find(merge.left)->name));
    }
    std::ranges::sort(joined);
    joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
    return joined;
  }

  TokenizerDescription from_;
  TokenizerParts parts_;
};

}  // namespace

Expected<TokenizerParts> make_tokenizer_parts(TokenizerDescription description) {
  return PartsMaker(std::move(description)).make();
}

}  // namespace anyslot

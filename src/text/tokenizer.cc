#include "text/tokenizer.h"

#include "text/gguf_tokenizer.h"
#include "text/tokenizer_file.h"
#include "text/utf8.h"

namespace anyslot {

namespace {

Status check_text(std::string_view text) {
  if (text.size() > Tokenizer::kMaxTextBytes) {
    return invalid_argument("a text of " + std::to_string(text.size()) +
                            " bytes cannot be tokenized: the limit is " +
                            std::to_string(Tokenizer::kMaxTextBytes) + " bytes; split it");
  }
  if (const auto offset = find_invalid_utf8(text)) {
    return invalid_argument("the text is not valid UTF-8 at byte " + std::to_string(*offset) +
                            "; convert it to UTF-8 first");
  }
  return {};
}

Status check_markup(std::string_view text, std::span<const ByteRange> markup) {
  size_t previous_end = 0;
  for (size_t i = 0; i < markup.size(); ++i) {
    const ByteRange& range = markup[i];
    if (range.begin < previous_end || range.end < range.begin || range.end > text.size()) {
      return invalid_argument("markup range " + std::to_string(i) + " [" +
                              std::to_string(range.begin) + ", " + std::to_string(range.end) +
                              ") must be ascending, apart from the others and inside the text of " +
                              std::to_string(text.size()) + " bytes");
    }
    previous_end = range.end;
  }
  return {};
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Expected<Tokenizer> Tokenizer::load(const std::string& tokenizer_json_path) {
  Expected<TokenizerParts> parts = load_tokenizer_file(tokenizer_json_path);
  if (!parts) return parts.status();
  return Tokenizer(std::make_unique<const TokenizerParts>(*std::move(parts)));
}

Expected<Tokenizer> Tokenizer::create(const GgufTokenizer& source) {
  Expected<TokenizerParts> parts = read_gguf_tokenizer(source);
  if (!parts) return parts.status();
  return Tokenizer(std::make_unique<const TokenizerParts>(*std::move(parts)));
}

Expected<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                                 std::span<const ByteRange> markup) const {
  if (Status status = check_text(text); !status.ok()) return status;
  if (Status status = check_markup(text, markup); !status.ok()) return status;

  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  Bpe::Scratch scratch;
  const PieceSink encode_word = [&](std::string_view word) {
    parts_->model.encode_word(word, scratch, ids);
  };
  for (const TextPiece& piece : parts_->added_tokens.split(text, markup)) {
    if (piece.id != TextPiece::kPlain) {
      ids.push_back(piece.id);
      continue;
    }
    const std::string_view plain = text.substr(piece.begin, piece.end - piece.begin);
    if (Status status = parts_->pre_tokenizer.split(plain, encode_word); !status.ok())
      return status;
  }
  return ids;
}

std::vector<int32_t> Tokenizer::add_special_tokens(std::span<const int32_t> ids) const {
  std::vector<int32_t> all = parts_->post_processor.prefix_ids;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::vector<int32_t>& suffix = parts_->post_processor.suffix_ids;
  all.insert(all.end(), suffix.begin(), suffix.end());
  return all;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!skip_special_tokens || !is_special(id)) bytes += token_bytes(id);
  }
  std::string text;
  text.reserve(bytes.size());
  append_utf8_lossy(text, bytes);
  return text;
}

std::optional<int32_t> Tokenizer::token_id(std::string_view name) const {
  return parts_->vocabulary.id(name);
}

std::string_view Tokenizer::token_name(int32_t id) const {
  const Vocabulary::Token* token = parts_->vocabulary.find(id);
  return token == nullptr ? std::string_view() : token->name;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  const Vocabulary::Token* token = parts_->vocabulary.find(id);
  return token == nullptr ? std::string_view() : token->bytes;
}

bool Tokenizer::is_special(int32_t id) const {
  const Vocabulary::Token* token = parts_->vocabulary.find(id);
  return token != nullptr && token->special;
}

int32_t Tokenizer::vocab_size() const { return parts_->vocabulary.size(); }

const Digest& Tokenizer::fingerprint() const { return parts_->fingerprint; }

}  // namespace anyslot

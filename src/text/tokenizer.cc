#include "text/tokenizer.h"

#include <utility>

#include "text/detokenizer.h"
#include "text/gguf_tokenizer.h"
#include "text/text_encoder.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer_parts.h"
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
  Expected<TokenizerDescription> description = read_tokenizer_file(tokenizer_json_path);
  if (!description) return description.status();
  return make(*std::move(description));
}

Expected<Tokenizer> Tokenizer::create(const GgufTokenizer& source) {
  Expected<TokenizerDescription> description = read_gguf_tokenizer(source);
  if (!description) return description.status();
  return make(*std::move(description));
}

Expected<Tokenizer> Tokenizer::make(TokenizerDescription description) {
  Expected<TokenizerParts> parts = make_tokenizer_parts(std::move(description));
  if (!parts) return parts.status();
  return Tokenizer(std::make_unique<const TokenizerParts>(*std::move(parts)));
}

Expected<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                                 std::span<const ByteRange> markup) const {
  if (Status status = check_text(text); !status.ok()) return status;
  if (Status status = check_markup(text, markup); !status.ok()) return status;
  return TextEncoder(*parts_, text, markup).run();
}

std::vector<int32_t> Tokenizer::add_special_tokens(std::span<const int32_t> ids) const {
  std::vector<int32_t> all = parts_->post_processor.prefix_ids;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::vector<int32_t>& suffix = parts_->post_processor.suffix_ids;
  all.insert(all.end(), suffix.begin(), suffix.end());
  return all;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  StreamingDetokenizer detokenizer(*this, skip_special_tokens);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  return text + detokenizer.flush();
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

bool Tokenizer::is_byte_level() const { return parts_->decoder.byte_level(); }

const Digest& Tokenizer::fingerprint() const { return parts_->fingerprint; }

}  // namespace anyslot

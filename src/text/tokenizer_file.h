#pragma once

#include <string>
#include <string_view>

#include "anyslot/status.h"
#include "text/tokenizer_description.h"

namespace anyslot {

/// Reads a tokenizer.json with byte-pair encoding. Nothing in it is passed over silently: what has
/// a bearing on ids or text and is not supported is refused by name. Errors as Tokenizer::load.
Expected<TokenizerDescription> read_tokenizer_file(const std::string& path);

/// The same for the text of such a file; `path` is for messages.
Expected<TokenizerDescription> read_tokenizer_json(const std::string& path,
                                                   const std::string& text);

}  // namespace anyslot

#pragma once

#include "anyslot/status.h"
#include "text/json_fields.h"
#include "text/tokenizer_description.h"

namespace anyslot {

/// Checks that the field `model` of a tokenizer.json is a BPE, and adds its tokens to the
/// description's vocabulary.
Status read_bpe_vocabulary(JsonFields& file, TokenizerDescription& out);

/// Reads the rest of the model that read_bpe_vocabulary accepted. The description must know the
/// added tokens and whether the model is byte-level.
Status read_bpe(JsonFields& file, TokenizerDescription& out);

}  // namespace anyslot

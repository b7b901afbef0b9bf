#pragma once

#include "text/tokenizer_description.h"

/// A description that is accepted makes tokens of a text, of which none is special where nothing is
/// markup (an unknown character's is no such token), and text of any tokens.
void use_tokenizer(anyslot::TokenizerDescription description);

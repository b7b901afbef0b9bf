#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "anyslot/status.h"
#include "text/tokenizer_description.h"

namespace anyslot {

/// The names of the tokens that a merge joins.
using MergeNames = std::pair<std::string_view, std::string_view>;

/// Of a merge that is written "left right"; nullopt for any other text.
std::optional<MergeNames> split_merge(std::string_view text);

/// Adds a merge of less importance than all before. Fails with kFailedPrecondition where a name is
/// no token of the model.
Status add_merge(const MergeNames& names, TokenizerDescription& out);

/// Adds the merges of SentencePiece's rule (github.com/google/sentencepiece, src/bpe_model.cc):
/// two neighbours that a piece can be cut into are joined, those of the highest score first.
/// `pieces`: ids of tokens; `scores`: finite, by id. Fails with kFailedPrecondition when the scores
/// say nothing, or when that gives more merges than any vocabulary has.
Status add_merges_of_scores(std::span<const int32_t> pieces, std::span<const double> scores,
                            TokenizerDescription& out);

}  // namespace anyslot

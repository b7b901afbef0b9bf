#include <set>

#include "sched/sequence.h"

namespace anyslot {

namespace {

std::string_view encoding_name(const MethodTraits& traits) {
  if (!traits.documents_alone) return "in place";
  if (traits.key_form == KeyForm::kTurned) return "alone, turned";
  return traits.recompute_first_block ? "alone, raw, first block in place" : "alone, raw";
}

// The entry of a document is the same whether or not requests recompute its first block.
std::string_view document_encoding_name(const MethodTraits& traits) {
  return traits.key_form == KeyForm::kTurned ? "alone, turned" : "alone, raw";
}

SequenceSpan make_text_span(int64_t begin, std::span<const int32_t> tokens,
                            const MethodTraits& traits, const Digest& chain) {
  SequenceSpan span;
  span.role = SpanRole::kText;
  span.begin = begin;
  span.end = begin + static_cast<int64_t>(tokens.size());
  span.indexed = traits.prefix_index;
  span.key = chain;
  if (span.indexed) span.block_keys = block_keys(chain, tokens);
  return span;
}

SequenceSpan make_document_span(int64_t begin, int64_t end, const MethodTraits& traits,
                                const Digest& key) {
  SequenceSpan span;
  span.role = traits.turned_copies ? SpanRole::kCopiedDocument : SpanRole::kSharedDocument;
  span.begin = begin;
  span.end = end;
  span.key_form = traits.key_form;
  span.recompute_first_block = traits.recompute_first_block;
  span.key = key;
  return span;
}

void add_spans(Sequence& sequence, const std::vector<TokenSegment>& segments,
               const MethodTraits& traits, const KeyDomain& domain, const std::string& salt) {
  Digest chain = text_chain_root(domain, encoding_name(traits), salt);
  int64_t begin = 0;
  for (const TokenSegment& segment : segments) {
    const auto length = static_cast<int64_t>(segment.token_ids.size());
    const std::span<const int32_t> ids(segment.token_ids);
    if (segment.kind == SegmentKind::kDocument) {
      const Digest key = document_key(domain, document_encoding_name(traits), salt, ids);
      sequence.spans.push_back(make_document_span(begin, begin + length, traits, key));
      chain = extend_with_segment(chain, "document", key);
    } else {
      sequence.spans.push_back(make_text_span(begin, ids, traits, chain));
      chain = extend_with_segment(chain, "text", block_key(chain, ids));
    }
    begin += length;
  }
}

GivenDocument given_document(const TokenSegment& segment, int64_t begin, int64_t end) {
  GivenDocument document{segment.id, begin, end, segment.pin, std::nullopt, false};
  if (segment.ttl_seconds) document.time_to_live = *segment.ttl_seconds * kTicksPerSecond;
  return document;
}

}  // namespace

std::unique_ptr<Sequence> expand_prompt(const std::vector<TokenSegment>& segments,
                                        const MethodTraits& traits, const KeyDomain& domain,
                                        const std::string& salt) {
  auto sequence = std::make_unique<Sequence>();
  bool has_documents = false;
  for (const TokenSegment& segment : segments) {
    const auto begin = static_cast<int64_t>(sequence->tokens.size());
    sequence->tokens.insert(sequence->tokens.end(), segment.token_ids.begin(),
                            segment.token_ids.end());
    has_documents = has_documents || segment.kind == SegmentKind::kDocument;
    const auto end = static_cast<int64_t>(sequence->tokens.size());
    if (segment.kind == SegmentKind::kText) sequence->text_ranges.push_back({begin, end});
    if (segment.document_index >= 0) {
      sequence->documents.push_back(given_document(segment, begin, end));
    }
  }
  sequence->owner = owner_of(salt);
  sequence->num_prompt_tokens = static_cast<int64_t>(sequence->tokens.size());
  if (traits.documents_alone && has_documents) {
    add_spans(*sequence, segments, traits, domain, salt);
  } else {
    const Digest chain = text_chain_root(domain, "in place", salt);
    sequence->spans.push_back(make_text_span(0, sequence->tokens, traits, chain));
  }
  return sequence;
}

std::unique_ptr<Sequence> expand_document(const TokenSegment& document, const MethodTraits& traits,
                                          const KeyDomain& domain, const std::string& salt) {
  MethodTraits shared = traits;  // what requests make of it is theirs
  shared.turned_copies = false;
  shared.recompute_first_block = false;
  std::unique_ptr<Sequence> sequence = expand_prompt({document}, shared, domain, salt);
  sequence->has_answer = false;
  sequence->usage_known = true;
  return sequence;
}

std::vector<std::unique_ptr<Sequence>> further_choices(const Sequence& first, int n) {
  std::vector<std::unique_ptr<Sequence>> choices;
  for (int choice = 1; choice < n; ++choice) {
    auto sequence = std::make_unique<Sequence>(first);
    sequence->choice = choice;
    sequence->prompt_logits = false;
    sequence->usage_known = true;
    for (GivenDocument& document : sequence->documents) document.pin_done = true;
    choices.push_back(std::move(sequence));
  }
  return choices;
}

int64_t max_blocks(const Sequence& sequence, int64_t max_tokens) {
  int64_t blocks = 0;
  std::set<Digest> documents;
  for (const SequenceSpan& span : sequence.spans) {
    if (span.is_document() && documents.insert(span.key).second)
      blocks += blocks_for(span.num_tokens());
    switch (span.role) {
      case SpanRole::kText:
        blocks += blocks_for(span.num_tokens() + (&span == &sequence.last_span() ? max_tokens : 0));
        break;
      case SpanRole::kCopiedDocument:
        blocks += blocks_for(span.num_tokens());
        break;
      case SpanRole::kSharedDocument:
        blocks += span.recompute_first_block ? 1 : 0;
        break;
    }
  }
  return blocks;
}

}  // namespace anyslot

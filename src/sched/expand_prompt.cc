#include <set>
#include <utility>

#include "sched/given_request.h"
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
  if (span.indexed) {
    span.prompt_keys = std::make_shared<const std::vector<Digest>>(block_keys(chain, tokens));
  }
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

void add_spans(GivenRequest& request, const std::vector<TokenSegment>& segments,
               const MethodTraits& traits, const KeyDomain& domain, const std::string& salt) {
  Digest chain = text_chain_root(domain, encoding_name(traits), salt);
  int64_t begin = 0;
  for (const TokenSegment& segment : segments) {
    const auto length = static_cast<int64_t>(segment.token_ids.size());
    const std::span<const int32_t> ids(segment.token_ids);
    if (segment.kind == SegmentKind::kDocument) {
      const Digest key = document_key(domain, document_encoding_name(traits), salt, ids);
      request.spans.push_back(make_document_span(begin, begin + length, traits, key));
      chain = extend_with_segment(chain, "document", key);
    } else {
      request.spans.push_back(make_text_span(begin, ids, traits, chain));
      chain = extend_with_segment(chain, "text", block_key(chain, ids));
    }
    begin += length;
  }
}

GivenDocument given_document(const TokenSegment& segment, int64_t begin, int64_t end) {
  GivenDocument document{segment.id,  begin,        end,
                         segment.pin, std::nullopt, segment.hold_seconds * kTicksPerSecond};
  if (segment.ttl_seconds) document.time_to_live = *segment.ttl_seconds * kTicksPerSecond;
  return document;
}

}  // namespace

GivenRequest expand_prompt(const std::vector<TokenSegment>& segments, const MethodTraits& traits,
                           const KeyDomain& domain, const std::string& salt) {
  GivenRequest request;
  bool has_documents = false;
  for (const TokenSegment& segment : segments) {
    const int64_t begin = request.num_prompt_tokens();
    request.prompt.insert(request.prompt.end(), segment.token_ids.begin(), segment.token_ids.end());
    has_documents = has_documents || segment.kind == SegmentKind::kDocument;
    const int64_t end = request.num_prompt_tokens();
    if (segment.kind == SegmentKind::kText) request.text_ranges.push_back({begin, end});
    if (segment.document_index >= 0) {
      request.documents.push_back(given_document(segment, begin, end));
    }
  }
  request.owner = owner_of(salt);
  if (traits.documents_alone && has_documents) {
    add_spans(request, segments, traits, domain, salt);
  } else {
    const Digest chain = text_chain_root(domain, "in place", salt);
    request.spans.push_back(make_text_span(0, request.prompt, traits, chain));
  }
  return request;
}

GivenRequest expand_document(const TokenSegment& document, const MethodTraits& traits,
                             const KeyDomain& domain, const std::string& salt) {
  MethodTraits shared = traits;  // what requests make of it is theirs
  shared.turned_copies = false;
  shared.recompute_first_block = false;
  GivenRequest request = expand_prompt({document}, shared, domain, salt);
  request.has_answer = false;
  return request;
}

std::vector<std::unique_ptr<Sequence>> make_choices(
    const std::shared_ptr<const GivenRequest>& given, int n) {
  std::vector<std::unique_ptr<Sequence>> choices;
  for (int choice = 0; choice < n; ++choice) {
    auto sequence = std::make_unique<Sequence>();
    sequence->choice = choice;
    sequence->given = given;
    sequence->usage_known = choice > 0 || !given->has_answer;
    if (choice == 0) sequence->pins_made.assign(given->documents.size(), false);
    choices.push_back(std::move(sequence));
  }
  return choices;
}

int64_t max_blocks(const GivenRequest& request, int64_t max_tokens) {
  int64_t blocks = 0;
  std::set<Digest> documents;
  for (const SequenceSpan& span : request.spans) {
    if (span.is_document() && documents.insert(span.key).second)
      blocks += blocks_for(span.num_tokens());
    switch (span.role) {
      case SpanRole::kText:
        blocks += blocks_for(span.num_tokens() + (&span == &request.spans.back() ? max_tokens : 0));
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

void cut_answer(GivenRequest& request, int64_t too_many) {
  if (too_many <= 0) return;
  int& max_tokens = request.sampling.max_tokens;
  const int64_t tail = request.spans.back().num_tokens();
  const int64_t room = (blocks_for(tail + max_tokens) - too_many) * kBlockSize - tail;
  max_tokens = static_cast<int>(std::max<int64_t>({1, request.sampling.min_tokens, room}));
}

}  // namespace anyslot

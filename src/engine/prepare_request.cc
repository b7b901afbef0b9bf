#include "engine/prepare_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/check_sampling.h"
#include "sched/method_traits.h"

namespace anyslot::internal {

namespace {

std::string segment_name(const Segment& segment, size_t index) {
  std::string name = segment.name.empty() ? fmt::format("segment {}", index) : segment.name;
  if (!segment.id.empty()) name += fmt::format(" ('{}')", segment.id);
  return name;
}

Expected<std::vector<int32_t>> segment_tokens(const Segment& segment, size_t index,
                                              const std::string& salt, const EngineParts& parts,
                                              TokenMemo& memo) {
  if (!segment.token_ids.empty()) {
    for (const int32_t id : segment.token_ids) {
      if (id >= 0 && id < parts.model.vocab_size) continue;
      return invalid_argument(fmt::format("{}: token id {} is not in the vocabulary of {} tokens",
                                          segment_name(segment, index), id, parts.model.vocab_size))
          .about(segment.name);
    }
    return segment.token_ids;
  }
  if (segment.text.empty()) return std::vector<int32_t>{};
  if (parts.tokenizer == nullptr) {
    return failed_precondition(
               fmt::format("{}: the model has no tokenizer.json, so only token_ids can be given",
                           segment_name(segment, index)))
        .about(segment.name);
  }
  auto tokens = memo.encode(*parts.tokenizer, salt, segment.text, segment.markup);
  if (!tokens.ok()) {
    return Status(tokens.status().code(),
                  fmt::format("{}: {}", segment_name(segment, index), tokens.status().message()))
        .about(segment.name);
  }
  return **tokens;
}

// Ids live as long as their documents, outside the pool.
Status check_id(const Segment& segment, size_t index) {
  if (segment.id.size() <= kMaxIdBytes) return {};
  const std::string name = segment.name.empty() ? fmt::format("segment {}", index) : segment.name;
  return invalid_argument(fmt::format("{}: its id has {} bytes; at most {} are allowed", name,
                                      segment.id.size(), kMaxIdBytes))
      .about(segment.name);
}

Status check_wishes(const Segment& segment, size_t index, const MethodTraits& traits) {
  if (segment.hold_seconds < 0 || segment.hold_seconds > kMaxTtlSeconds) {
    return invalid_argument(fmt::format("{}: hold_seconds is {}; it must be between 0 and {}",
                                        segment_name(segment, index), segment.hold_seconds,
                                        kMaxTtlSeconds))
        .about(segment.name);
  }
  if (!segment.pin && !segment.ttl_seconds) return {};
  const std::string wish = segment.pin ? "pin" : "ttl";
  if (segment.kind != SegmentKind::kDocument) {
    return invalid_argument(
               fmt::format("{} is text; {} is for documents", segment_name(segment, index), wish))
        .about(segment.name);
  }
  if (!traits.documents_alone) {
    return invalid_argument(
               fmt::format(
                   "{} has a {}, but this method keeps no documents; use lazy, block or mepic",
                   segment_name(segment, index), wish))
        .about(segment.name);
  }
  const int64_t ttl = segment.ttl_seconds.value_or(0);
  if (ttl < 0 || ttl > kMaxTtlSeconds) {
    return invalid_argument(fmt::format("{}: ttl is {} seconds; it must be between 1 and {}, or 0 "
                                        "for no limit",
                                        segment_name(segment, index), ttl, kMaxTtlSeconds))
        .about(segment.name);
  }
  return {};
}

Expected<TokenSegment> token_segment(const Segment& segment, size_t index, const std::string& salt,
                                     const MethodTraits& traits, const EngineParts& parts,
                                     TokenMemo& memo) {
  if (Status status = check_id(segment, index); !status.ok()) return status;
  if (Status status = check_wishes(segment, index, traits); !status.ok()) return status;
  auto tokens = segment_tokens(segment, index, salt, parts, memo);
  if (!tokens.ok()) return tokens.status();
  return TokenSegment{segment.kind, std::move(*tokens),  segment.id,          -1,
                      segment.pin,  segment.ttl_seconds, segment.hold_seconds};
}

Expected<std::vector<TokenSegment>> tokenize_segments(const Request& request,
                                                      const MethodTraits& traits,
                                                      const EngineParts& parts, TokenMemo& memo) {
  std::vector<TokenSegment> segments;
  for (size_t i = 0; i < request.segments.size(); ++i) {
    auto segment = token_segment(request.segments[i], i, request.cache_salt, traits, parts, memo);
    if (!segment.ok()) return segment.status();
    segments.push_back(std::move(*segment));
  }
  return normalize_segments(std::move(segments));
}

MethodTraits traits_of(const std::optional<Method>& method, const EngineParts& parts) {
  return method_traits(method.value_or(*parts.config.method),
                       parts.config.mepic_recompute_first_block);
}

std::string mebibytes(int64_t blocks, const EngineParts& parts) {
  const double bytes =
      static_cast<double>(blocks) * static_cast<double>(parts.storage->shape().block_bytes());
  return fmt::format("{:.1f} MiB", bytes / (1 << 20));
}

Status check_length(const GivenRequest& request, const EngineParts& parts) {
  if (request.num_prompt_tokens() >= parts.config.max_model_len) {
    return out_of_range(
        fmt::format("the prompt has {} tokens, which leaves no room for an answer within the "
                    "model's length of {}; "
                    "shorten it or raise --max-model-len",
                    request.num_prompt_tokens(), parts.config.max_model_len));
  }
  const int64_t needed = max_blocks(request, request.sampling.max_tokens);
  const int64_t given = parts.storage->shape().num_blocks;
  if (needed > given) {
    return out_of_range(
        fmt::format("the request needs {} KV blocks ({}) for {} prompt and {} answer tokens, but "
                    "the pool has {} ({}); "
                    "raise --kv-cache or shorten the request",
                    needed, mebibytes(needed, parts), request.num_prompt_tokens(),
                    request.sampling.max_tokens, given, mebibytes(given, parts)));
  }
  return {};
}

// The longest answer that the pool holds beside the prompt, if that is shorter.
void fit_to_pool(GivenRequest& request, const EngineParts& parts) {
  const int64_t given = parts.storage->shape().num_blocks;
  cut_answer(request, max_blocks(request, request.sampling.max_tokens) - given);
}

Tenant tenant_of(const std::string& tenant) {
  return tenant.empty() ? Tenant() : Tenant(owner_of(tenant));
}

Status check_document_size(const GivenRequest& document, const EngineParts& parts) {
  if (document.num_prompt_tokens() >= parts.config.max_model_len) {
    return out_of_range(
        fmt::format("the document has {} tokens, which leaves no room for a question within the "
                    "model's length of {}; shorten it or raise --max-model-len",
                    document.num_prompt_tokens(), parts.config.max_model_len));
  }
  const int64_t needed = blocks_for(document.num_prompt_tokens());
  const int64_t given = parts.storage->shape().num_blocks;
  if (needed > given) {
    return out_of_range(
        fmt::format("the document needs {} KV blocks ({}) for {} tokens, but the pool has {} ({}); "
                    "raise --kv-cache or shorten the document",
                    needed, mebibytes(needed, parts), document.num_prompt_tokens(), given,
                    mebibytes(given, parts)));
  }
  return {};
}

}  // namespace

Expected<GivenRequest> prepare_request(const Request& request, const EngineParts& parts,
                                       TokenMemo& memo) {
  if (Status status = check_sampling(request.sampling, parts); !status.ok()) return status;
  const MethodTraits traits = traits_of(request.method, parts);
  auto segments = tokenize_segments(request, traits, parts, memo);
  if (!segments.ok()) return segments.status();

  GivenRequest given = expand_prompt(*segments, traits, parts.key_domain, request.cache_salt);
  given.sampling = request.sampling;
  given.sampling.max_tokens = static_cast<int>(std::clamp<int64_t>(
      parts.config.max_model_len - given.num_prompt_tokens(), 1, request.sampling.max_tokens));
  if (request.fit_max_tokens) fit_to_pool(given, parts);
  given.prompt_logits = request.prompt_logits;
  given.tenant = tenant_of(request.tenant);
  if (!request.sampling.ignore_eos) given.stop_token_ids = parts.stop_token_ids;
  given.stop_token_ids.insert(given.stop_token_ids.end(), request.sampling.stop_token_ids.begin(),
                              request.sampling.stop_token_ids.end());
  if (Status status = check_length(given, parts); !status.ok()) return status;
  return given;
}

Expected<GivenRequest> prepare_document(const Segment& document, const DocumentOptions& options,
                                        const EngineParts& parts, TokenMemo& memo) {
  const MethodTraits traits = traits_of(options.method, parts);
  if (document.kind != SegmentKind::kDocument) {
    return invalid_argument("what is registered must be a document, not text");
  }
  if (!traits.documents_alone) {
    return invalid_argument(
        fmt::format("method {} keeps no documents; register them for lazy, block or mepic",
                    method_name(options.method.value_or(*parts.config.method))));
  }
  auto segment = token_segment(document, 0, options.cache_salt, traits, parts, memo);
  if (!segment.ok()) return segment.status();
  if (segment->token_ids.empty()) return invalid_argument("the document has no tokens");
  segment->document_index = 0;
  GivenRequest given = expand_document(*segment, traits, parts.key_domain, options.cache_salt);
  given.tenant = tenant_of(options.tenant);
  if (Status status = check_document_size(given, parts); !status.ok()) return status;
  return given;
}

}  // namespace anyslot::internal

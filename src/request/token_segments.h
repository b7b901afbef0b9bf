#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/status.h"

namespace anyslot {

/// A segment after tokenizing.
struct TokenSegment {
  SegmentKind kind = SegmentKind::kText;
  std::vector<int32_t> token_ids;
  std::string id;
  int document_index = -1;  // among the documents that the caller gave; -1: text, or the preamble
  bool pin = false;         // of documents, as in Segment; so is the next
  std::optional<int64_t> ttl_seconds = std::nullopt;
  int64_t hold_seconds = 0;
};

/// Brings segments into the form that the scheduler expects: adjacent text is one segment, empty
/// text is gone, text before the first document is a document of its own, and the last segment is
/// text. Sets document_index. Fails with kInvalidArgument for an empty request, an empty document,
/// or a document at the end.
Expected<std::vector<TokenSegment>> normalize_segments(std::vector<TokenSegment> segments);

}  // namespace anyslot

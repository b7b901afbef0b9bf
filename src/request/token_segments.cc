#include "request/token_segments.h"

#include <algorithm>
#include <utility>

namespace anyslot {

namespace {

std::string document_name(const TokenSegment& document) {
  std::string name = "document " + std::to_string(document.document_index);
  if (!document.id.empty()) name += " ('" + document.id + "')";
  return name;
}

}  // namespace

Expected<std::vector<TokenSegment>> normalize_segments(std::vector<TokenSegment> segments) {
  std::vector<TokenSegment> result;
  int num_documents = 0;
  for (TokenSegment& segment : segments) {
    if (segment.kind == SegmentKind::kDocument) {
      segment.document_index = num_documents++;
      if (segment.token_ids.empty()) {
        return invalid_argument(document_name(segment) + " has no tokens; leave it out");
      }
      result.push_back(std::move(segment));
    } else if (segment.token_ids.empty()) {
      continue;
    } else if (!result.empty() && result.back().kind == SegmentKind::kText) {
      std::vector<int32_t>& tokens = result.back().token_ids;
      tokens.insert(tokens.end(), segment.token_ids.begin(), segment.token_ids.end());
    } else {
      segment.document_index = -1;
      result.push_back(std::move(segment));
    }
  }
  if (result.empty()) return invalid_argument("the request has no tokens");
  if (result.back().kind == SegmentKind::kDocument) {
    return invalid_argument("the request ends in " + document_name(result.back()) +
                            "; a text segment with the question must follow it");
  }
  if (num_documents > 0) result.front().kind = SegmentKind::kDocument;
  return result;
}

}  // namespace anyslot

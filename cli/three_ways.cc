#include "three_ways.h"

#include "answer_metrics.h"
#include "completion.h"

namespace anyslot::cli {
namespace {

Expected<WayAnswer> answer(Engine& engine, const InputRow& row, const SamplingParams& sampling,
                           std::vector<Segment> segments) {
  Request request;
  request.segments = std::move(segments);
  request.sampling = sampling;
  request.method = row.method;
  Expected<Completion> completion = complete(engine, request);
  if (!completion) return completion.status();
  WayAnswer result{std::move(completion->text), std::nullopt};
  if (!row.answers.empty()) result.found = score_answer(result.text, row.answers).contains_match;
  return result;
}

}  // namespace

std::vector<Document> reordered_documents(const std::vector<Document>& documents) {
  return {documents.rbegin(), documents.rend()};
}

Segment inlined_segment(const std::vector<Segment>& segments) {
  Segment inlined;
  for (const Segment& segment : segments) {
    for (const ByteRange& range : segment.markup) {
      inlined.markup.push_back(
          {inlined.text.size() + range.begin, inlined.text.size() + range.end});
    }
    inlined.text += segment.text;
  }
  return inlined;
}

Expected<ThreeWays> answer_three_ways(Engine& engine, const InputRow& row,
                                      const SamplingParams& sampling) {
  Expected<std::vector<Segment>> in_order = engine.render_rag(row.documents, row.question);
  if (!in_order) return in_order.status();
  Expected<std::vector<Segment>> reordered =
      engine.render_rag(reordered_documents(row.documents), row.question);
  if (!reordered) return reordered.status();

  ThreeWays ways;
  const auto run = [&](std::vector<Segment> segments, WayAnswer& into) {
    Expected<WayAnswer> result = answer(engine, row, sampling, std::move(segments));
    if (!result) return result.status();
    into = *std::move(result);
    return Status();
  };
  Status status = run({inlined_segment(*in_order)}, ways.inlined);
  if (status.ok()) status = run(*std::move(in_order), ways.documents);
  if (status.ok()) status = run(*std::move(reordered), ways.reordered);
  if (!status.ok()) return status;
  return ways;
}

}  // namespace anyslot::cli

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"

namespace anyslot::bench {

/// A data set's own measure of an answer, in [0, 1].
enum class AnswerMetric : uint8_t {
  kExactMatch,      // equal after SQuAD's normalization
  kContains,        // the right answer stands in the output, both normalized
  kF1,              // of the bags of normalized words
  kRougeL,          // ROUGE-L F of words
  kClassification,  // LongBench trec, lsht: the right class stands in the output, by the classes in
                    // it
  kRetrieval,       // LongBench passage_retrieval: share of the right number among those given
  kCount,           // LongBench passage_count: share of the right count among the numbers given
  kCodeSimilarity   // LongBench lcc, repobench-p: likeness of the first line of code
};

std::string_view answer_metric_name(AnswerMetric metric);

/// How well an output fits the best of the right answers, each number for itself; or means.
struct AnswerScores {
  double exact_match = 0;
  double contains_match = 0;
  double f1 = 0;
  double rouge_l = 0;
  double score = 0;  // by the data set's own measure
};

/// `all_classes`: of kClassification, the classes that a data set knows.
AnswerScores score_output(std::string_view output, const std::vector<std::string>& answers,
                          AnswerMetric metric, const std::vector<std::string>& all_classes);

/// ROUGE-L F1 of the words between spaces, over the whole texts. In [0, 1].
double rouge_l(std::string_view output, std::string_view answer);

}  // namespace anyslot::bench

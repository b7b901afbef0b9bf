#include "text/pre_tokenizer.h"

#include <string>

namespace anyslot {

Status PreTokenizer::split(std::string_view text, const PieceSink& sink) const {
  if (text.empty()) return {};
  return run_from(0, text, sink);
}

Status PreTokenizer::run_from(size_t step, std::string_view piece, const PieceSink& sink) const {
  if (step == steps_.size()) {
    sink(piece);
    return {};
  }
  if (std::holds_alternative<PrefixSpaceStep>(steps_[step])) {
    if (piece.starts_with(' ')) return run_from(step + 1, piece, sink);
    std::string spaced(1, ' ');
    spaced.append(piece);
    return run_from(step + 1, spaced, sink);
  }
  const Regex& regex = std::get<SplitStep>(steps_[step]).regex;
  if (step + 1 == steps_.size()) return regex.split(piece, sink);
  Status first_error;
  const Status status = regex.split(piece, [&](std::string_view part) {
    if (!first_error.ok()) return;
    first_error = run_from(step + 1, part, sink);
  });
  return status.ok() ? first_error : status;
}

}  // namespace anyslot

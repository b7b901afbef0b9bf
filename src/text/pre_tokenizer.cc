#include "text/pre_tokenizer.h"

#include "text/utf8.h"

namespace anyslot {

namespace {

/// Turns matches and what lies between them into pieces.
class PieceMaker {
 public:
  PieceMaker(SplitBehavior behavior, const PieceSink& sink) : behavior_(behavior), sink_(sink) {}

  void add(std::string_view piece, bool is_match) {
    if (has_last_ && joins_last(is_match)) {
      last_ = {last_.data(), last_.size() + piece.size()};
    } else {
      finish();
      last_ = piece;
      has_last_ = behavior_ != SplitBehavior::kRemoved || !is_match;
    }
    last_is_match_ = is_match;
  }

  void finish() {
    if (has_last_ && !last_.empty()) sink_(last_);
    has_last_ = false;
  }

 private:
  bool joins_last(bool is_match) const {
    switch (behavior_) {
      case SplitBehavior::kMergedWithPrevious:
        return is_match && !last_is_match_;
      case SplitBehavior::kMergedWithNext:
        return !is_match && last_is_match_;
      case SplitBehavior::kContiguous:
        return is_match == last_is_match_;
      case SplitBehavior::kIsolated:
      case SplitBehavior::kRemoved:
        return false;
    }
    return false;
  }

  SplitBehavior behavior_;
  const PieceSink& sink_;
  std::string_view last_;
  bool has_last_ = false;
  bool last_is_match_ = false;
};

bool is_of(CharacterKind kind, char32_t code_point) {
  switch (kind) {
    case CharacterKind::kWhiteSpace:
      return is_white_space(code_point);
    case CharacterKind::kNumeric:
      return is_numeric(code_point);
    case CharacterKind::kPunctuation:
      return is_punctuation(code_point);
  }
  return false;
}

void split_at_kind(const KindSplitStep& step, std::string_view text, const PieceSink& sink) {
  PieceMaker pieces(step.behavior, sink);
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = next_utf8_unit(text.substr(at)).size;
    if (is_of(step.kind, first_code_point(text.substr(at)))) {
      if (at > done) pieces.add(text.substr(done, at - done), false);
      pieces.add(text.substr(at, size), true);
      done = at + size;
    }
    at += size;
  }
  if (done < text.size()) pieces.add(text.substr(done), false);
  pieces.finish();
}

void split_words(std::string_view text, const PieceSink& sink) {
  enum class Kind : uint8_t { kSpace, kWord, kOther };
  Kind kind = Kind::kSpace;  // of the piece that begins at `begin`
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t code_point = first_code_point(text.substr(at));
    const Kind next = is_word_character(code_point) ? Kind::kWord
                      : is_white_space(code_point)  ? Kind::kSpace
                                                    : Kind::kOther;
    if (next != kind) {
      if (kind != Kind::kSpace) sink(text.substr(begin, at - begin));
      kind = next;
      begin = at;
    }
    at += next_utf8_unit(text.substr(at)).size;
  }
  if (kind != Kind::kSpace) sink(text.substr(begin));
}

std::string with_metaspaces(const MetaspaceStep& step, std::string_view piece, bool at_begin) {
  std::string text;
  text.reserve(piece.size() + piece.size() / 3 + step.replacement.size());
  for (const char byte : piece) {
    if (byte == ' ') {
      text += step.replacement;
    } else {
      text += byte;
    }
  }
  const bool prepend = step.prepend == MetaspaceStep::Prepend::kAlways ||
                       (step.prepend == MetaspaceStep::Prepend::kFirst && at_begin);
  if (prepend && !text.starts_with(step.replacement)) text.insert(0, step.replacement);
  return text;
}

}  // namespace

/// One call of split().
class PreTokenizer::Run {
 public:
  Run(const std::vector<Step>& steps, const PieceSink& sink) : steps_(steps), sink_(sink) {}

  Status from(size_t step, std::string_view piece, bool at_begin) {
    if (step == steps_.size()) {
      sink_(piece);
      return {};
    }
    return std::visit([&](const auto& kind) { return apply(kind, step, piece, at_begin); },
                      steps_[step]);
  }

 private:
  /// Gives the pieces that `cut` makes of `piece` to the steps behind `step`.
  template <typename Cut>
  Status cut_with(size_t step, std::string_view piece, bool at_begin, const Cut& cut) {
    if (step + 1 == steps_.size()) return cut(sink_);
    Status first_error;
    const Status status = cut([&](std::string_view part) {
      if (!first_error.ok()) return;
      first_error = from(step + 1, part, at_begin && part.data() == piece.data());
    });
    return status.ok() ? first_error : status;
  }

  Status apply(const SplitStep& split, size_t step, std::string_view piece, bool at_begin) {
    return cut_with(step, piece, at_begin, [&](const PieceSink& sink) {
      PieceMaker pieces(split.behavior, sink);
      Status status = split.pattern.scan(piece, [&](std::string_view part, bool is_match) {
        pieces.add(part, is_match != split.invert);
      });
      pieces.finish();
      return status;
    });
  }

  Status apply(const KindSplitStep& split, size_t step, std::string_view piece, bool at_begin) {
    return cut_with(step, piece, at_begin, [&](const PieceSink& sink) {
      split_at_kind(split, piece, sink);
      return Status();
    });
  }

  Status apply(const WordsStep& /*words*/, size_t step, std::string_view piece, bool at_begin) {
    return cut_with(step, piece, at_begin, [&](const PieceSink& sink) {
      split_words(piece, sink);
      return Status();
    });
  }

  Status apply(const PrefixSpaceStep& /*prefix*/, size_t step, std::string_view piece,
               bool at_begin) {
    if (piece.starts_with(' ')) return from(step + 1, piece, at_begin);
    std::string spaced(1, ' ');
    spaced.append(piece);
    return from(step + 1, spaced, at_begin);
  }

  Status apply(const MetaspaceStep& metaspace, size_t step, std::string_view piece, bool at_begin) {
    const std::string text = with_metaspaces(metaspace, piece, at_begin);
    if (!metaspace.split) return from(step + 1, text, at_begin);
    return cut_with(step, text, at_begin, [&](const PieceSink& sink) {
      PieceMaker pieces(SplitBehavior::kMergedWithNext, sink);
      Status status =
          Pattern(metaspace.replacement).scan(text, [&](std::string_view part, bool is_match) {
            pieces.add(part, is_match);
          });
      pieces.finish();
      return status;
    });
  }

  const std::vector<Step>& steps_;
  const PieceSink& sink_;
};

Status PreTokenizer::split(std::string_view text, const PieceSink& sink, bool at_begin) const {
  if (text.empty()) return {};
  return Run(steps_, sink).from(0, text, at_begin);
}

}  // namespace anyslot

#include "text/pattern.h"

namespace anyslot {

Status Pattern::scan(std::string_view text, const MatchSink& sink) const {
  if (const Regex* regex = std::get_if<Regex>(&form_)) return regex->scan(text, sink);
  const std::string& literal = std::get<std::string>(form_);
  size_t done = 0;
  for (size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, done)) {
    if (at > done) sink(text.substr(done, at - done), false);
    sink(text.substr(at, literal.size()), true);
    done = at + literal.size();
  }
  if (done < text.size()) sink(text.substr(done), false);
  return {};
}

}  // namespace anyslot

#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "text/utf8.h"

namespace anyslot {

namespace {

constexpr size_t kJitStackStart = size_t{32} << 10;
constexpr size_t kJitStackLimit = size_t{4} << 20;
constexpr uint32_t kMatchLimit = 10'000'000;     // backtracking steps of one match
constexpr uint32_t kHeapLimitKiB = 256U << 10U;  // of one match, when there is no JIT

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

template <typename T, auto Free>
using Handle = std::unique_ptr<T, Deleter<Free>>;

using Code = Handle<pcre2_code, pcre2_code_free>;

/// What one thread needs to match; costly to make, so it is lent and given back.
struct MatchState {
  Handle<pcre2_match_data, pcre2_match_data_free> data;
  Handle<pcre2_match_context, pcre2_match_context_free> context;
  Handle<pcre2_jit_stack, pcre2_jit_stack_free> jit_stack;
};

std::unique_ptr<MatchState> make_match_state(const pcre2_code* code) {
  auto state = std::make_unique<MatchState>();
  state->data.reset(pcre2_match_data_create_from_pattern(code, nullptr));
  state->context.reset(pcre2_match_context_create(nullptr));
  if (!state->data || !state->context) throw std::bad_alloc();
  pcre2_set_match_limit(state->context.get(), kMatchLimit);
  pcre2_set_heap_limit(state->context.get(), kHeapLimitKiB);
  state->jit_stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr));
  if (state->jit_stack) {
    pcre2_jit_stack_assign(state->context.get(), nullptr, state->jit_stack.get());
  }
  return state;
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return std::to_string(code);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR as_units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? "" : text.data());
}

// White_Space of today's Unicode, as members of a class. PCRE2's \s has U+180E besides.
constexpr std::string_view kWhiteSpaceClass = R"(\t-\r\x{85}\p{Z})";

Status dialect_error(std::string_view what) {
  return failed_precondition("regular expressions with " + std::string(what) +
                             " are not supported: its meaning differs between regex libraries");
}

}  // namespace

Expected<std::string> translate_from_oniguruma(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const std::string_view rest = pattern.substr(i + 1);
    if (c == '\\' && !rest.empty()) {
      const char escaped = pattern[++i];
      switch (escaped) {
        case 's':
          out +=
              in_class ? std::string(kWhiteSpaceClass) : "[" + std::string(kWhiteSpaceClass) + "]";
          continue;
        case 'S':
          if (in_class) return dialect_error("\\S inside a class");
          out += "[^" + std::string(kWhiteSpaceClass) + "]";
          continue;
        case 'w':
        case 'W':
        case 'b':
        case 'B':
        case 'h':
        case 'H':
          return dialect_error(std::string("\\") + escaped);
        default:
          out += c;
          out += escaped;
          continue;
      }
    }
    if (in_class) {
      if (c == '[') return dialect_error("a class inside a class");
      if (c == '&' && rest.starts_with('&')) return dialect_error("an intersection of classes");
      if (c == ']') in_class = false;
    } else if (c == '[') {
      in_class = true;
      if (rest.starts_with(']') || rest.starts_with("^]"))
        return dialect_error("an unescaped ] first in a class");
    }
    out += c;
  }
  return out;
}

struct Regex::Impl {
  Code code;
  bool is_jit = false;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<MatchState>> idle;

  std::unique_ptr<MatchState> borrow() const {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto state = std::move(idle.back());
        idle.pop_back();
        return state;
      }
    }
    return make_match_state(code.get());
  }

  /// As pcre2_match.
  int match(std::string_view text, size_t from, const MatchState& state) const {
    const auto run = is_jit ? pcre2_jit_match : pcre2_match;  // the former checks nothing: quicker
    return run(code.get(), as_units(text), text.size(), from, PCRE2_NO_UTF_CHECK, state.data.get(),
               state.context.get());
  }

  void give_back(std::unique_ptr<MatchState> state) const {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(state));
  }
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Expected<Regex> Regex::compile(std::string_view pattern) {
  const Expected<std::string> translated = translate_from_oniguruma(pattern);
  if (!translated) return translated.status();
  const Handle<pcre2_compile_context, pcre2_compile_context_free> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);

  // Oniguruma's ^ and $ stand at every line.
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE;
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto impl = std::make_unique<Impl>();
  impl->code.reset(pcre2_compile(as_units(*translated), translated->size(), kOptions, &error,
                                 &offset, context.get()));
  if (!impl->code) {
    return failed_precondition("the regular expression cannot be compiled: " + error_text(error) +
                               " at offset " + std::to_string(offset) + " of " + *translated);
  }
  // Without JIT on this machine pcre2_match interprets: slower, the same matches.
  impl->is_jit = pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(impl));
}

Status Regex::scan(std::string_view text, const MatchSink& sink) const {
  std::unique_ptr<MatchState> state = impl_->borrow();
  const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(state->data.get());
  Status status;
  size_t done = 0;  // everything before this was given to the sink
  size_t from = 0;
  std::optional<size_t> last_end;  // of the last match
  while (from < text.size()) {
    const int result = impl_->match(text, from, *state);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      status = invalid_argument("the regular expression of the tokenizer failed at byte " +
                                std::to_string(from) + " of the text: " + error_text(result));
      break;
    }
    const size_t begin = std::max(bounds[0], done);
    const size_t end = std::max(bounds[1], begin);
    // As in Oniguruma's own loop, an empty match right behind another one is none.
    if (end > begin || end != last_end) {
      if (begin > done) sink(text.substr(done, begin - done), false);
      sink(text.substr(begin, end - begin), true);
      last_end = end;
      done = end;
    }
    from = end;
    if (end == begin && from < text.size()) from += next_utf8_unit(text.substr(from)).size;
  }
  if (status.ok() && done < text.size()) sink(text.substr(done), false);
  impl_->give_back(std::move(state));
  return status;
}

}  // namespace anyslot

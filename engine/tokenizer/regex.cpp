#include "engine/tokenizer/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <new>

#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

struct CompileContextDeleter {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

// Ruby's "^" and "$" always match at line ends, and only "\n" ends a line.
pcre2_code* compile(const std::string& pattern, PatternKind kind) {
  const std::unique_ptr<pcre2_compile_context, CompileContextDeleter> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const std::string translated = kind == PatternKind::literal ? pattern : pcre_from_oniguruma(pattern);
  const std::uint32_t options =
      kind == PatternKind::literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE;
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options, &error,
                                   &offset, context.get());
  if (code == nullptr)
    throw InputError("the pattern " + in_quotes(pattern) + " is not usable (" + error_text(error) + ")");
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT the interpreter runs
  return code;
}

// Whether the pattern matches at `from` or behind it; `data` has room for one match.
bool find(const pcre2_code* code, pcre2_match_data* data, std::string_view text, std::size_t from, Stretch& match) {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, nullptr);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)
    found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, nullptr);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) throw InputError("the tokenizer's pattern gave up on this text (" + error_text(found) + ")");
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
  match = {range[0], range[1], true};
  return true;
}

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : pcre(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(pcre); }
  pcre2_code* pcre;
};

Regex::Regex(const std::string& pattern, PatternKind kind) : code_(std::make_shared<Code>(compile(pattern, kind))) {}

// An empty match right behind another match is not taken: source, the onig crate's FindMatches.
std::vector<Stretch> Regex::cover(std::string_view text) const {
  constexpr std::size_t kNoMatchYet = std::string_view::npos;
  std::vector<Stretch> stretches;
  std::size_t covered = 0;
  std::size_t last_end = kNoMatchYet;
  Stretch match;
  const std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(pcre2_match_data_create(1, nullptr));
  if (!data) throw std::bad_alloc();
  for (std::size_t from = 0; from <= text.size() && find(code_->pcre, data.get(), text, from, match);) {
    if (match.begin == match.end && match.end == last_end) {
      from += from < text.size() ? first_unit(text.substr(from)).size : 1;
      continue;
    }
    from = last_end = match.end;
    if (covered < match.begin) stretches.push_back({covered, match.begin, false});
    stretches.push_back(match);
    covered = match.end;
  }
  if (covered < text.size()) stretches.push_back({covered, text.size(), false});
  return stretches;
}

}  // namespace dculab::engine

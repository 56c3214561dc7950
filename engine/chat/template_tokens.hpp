// A chat template cut into texts and tokens, with Jinja2's rules for white space (trim_blocks and lstrip_blocks on, as
// the transformers library sets them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::engine::chat {

enum class TokenKind : std::uint8_t {
  data,          // text between tags
  output_begin,  // {{
  output_end,    // }}
  block_begin,   // {%
  block_end,     // %}
  name,
  integer,
  real,
  text,  // of a literal, its escapes resolved
  sign,  // an operator or a bracket
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1;
};

// Throws InputError for tags that are not closed and for what no token begins with. `file` is for messages.
[[nodiscard]] std::vector<Token> tokens_of(std::string_view source, const std::string& file);

}  // namespace dculab::engine::chat

// JSON under one set of rules, whoever wrote it: no key twice in an object, at most 64 levels deep, at most four
// million values in one tree, in time that grows with the text and not faster.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "fields/node.hpp"
#include "fields/node_builder.hpp"

namespace dculab {

// A text that is not JSON: it breaks off, or was never any.
class JsonSyntaxError : public InputError {
 public:
  using InputError::InputError;
};

// The next piece of a text, whose pieces may be cut anywhere; empty at its end. Valid until the next call.
using NextPiece = std::function<std::string_view()>;
[[nodiscard]] NextPiece one_piece(std::string_view text);

// Both throw InputError for text that is not JSON and for what the rules above refuse. `file` is for messages, `line`
// is the line that the text begins on. Places have lines and no columns.
[[nodiscard]] Node parse_json(const std::string& file, int line, std::string_view text);

// Gives the items at `place` to `visit`, in order, and keeps none of them, so that memory does not grow with their
// number. Returns the rest: the root, its items left out.
Node read_json_items(const std::string& file, const NextPiece& next_piece, const ItemPlace& place,
                     const ItemVisitor& visit);

// JSON that parse_json reads as the same document, its places aside. Words become texts. One line, or indented.
[[nodiscard]] std::string json_text(const Node& node, int indent = -1);

// The value of an integer; nothing for what is none, or does not fit into T.
template <std::integral T = std::int64_t>
[[nodiscard]] std::optional<T> integer_of(const Node& node) {
  if (!node.is(ScalarType::integer)) return std::nullopt;
  T number = 0;
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The value of an integer or a real. Precondition: `node` is one.
[[nodiscard]] double number_of(const Node& node);

}  // namespace dculab

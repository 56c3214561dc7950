// Reads a chat template into its syntax tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/template_syntax.hpp"

namespace dculab::engine::chat {

// Throws InputError with the line for what is no Jinja, and for what is none of the subset, which it names. `file` is
// for messages.
[[nodiscard]] std::vector<Statement> read_template(std::string_view source, const std::string& file);

}  // namespace dculab::engine::chat

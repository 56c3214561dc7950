// Runs a chat template.
#pragma once

#include <string>
#include <vector>

#include "engine/chat/template_syntax.hpp"

namespace dculab::engine::chat {

// What the template makes of `variables`. Throws TemplateError, with the line, for what it raises, for values that do
// not go together, and for one that never ends.
[[nodiscard]] std::string run_template(const std::vector<Statement>& statements, const Dict& variables,
                                       const std::string& file);

}  // namespace dculab::engine::chat

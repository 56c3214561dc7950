// Chat templates, each run with a conversation.
#include "engine/chat/chat_template.hpp"

#include <string>

#include "fields/utf8.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {

void read_chat_template(std::string_view input) {
  const engine::ChatTemplate read(input, "fuzz", "<s>", "</s>");
  const std::string prompt = read.prompt({{.role = "system", .content = "Be brief."},
                                          {.role = "user", .content = " caf\u00e9 \U0001F600\n"},
                                          {.role = "assistant", .content = "<think>\nx\n</think>\n\ny"},
                                          {.role = "user", .content = ""}});
  require(valid_prefix(input) != input.size() || valid_prefix(prompt) == prompt.size(), "what is UTF-8 stays UTF-8");
}

}  // namespace dculab::fuzz

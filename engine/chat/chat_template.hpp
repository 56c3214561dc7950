// The chat template of a model: how a conversation becomes a prompt. A template is Jinja, of which a subset is read
// (docs/howto/serve.md); the transformers library runs it with trim_blocks, lstrip_blocks and loop controls, and so
// does this.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::engine {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" ...
  std::string content;
};

// Never changes, so any number of threads may use one.
class ChatTemplate {
 public:
  // Throws InputError, with the line, for what is no template, and for a construct outside of the subset, which it
  // names; filters and methods are looked at when a conversation reaches them. `file` is what messages call it.
  ChatTemplate(std::string_view source, std::string file, std::string bos_token = {}, std::string eos_token = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // The prompt that the assistant's answer follows; with the special tokens that the template writes. Throws InputError
  // for a conversation that the template refuses ("roles must alternate").
  [[nodiscard]] std::string prompt(const std::vector<ChatMessage>& messages) const;

  // What the template makes of any variables, given as a JSON object.
  [[nodiscard]] std::string run(std::string_view variables) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

// Of a model's folder: chat_template.jinja, or `chat_template` of tokenizer_config.json, of several the one named
// "default"; nothing where it has none. Throws InputError as above, and for a template that refuses a user's first
// message.
[[nodiscard]] std::optional<ChatTemplate> read_chat_template(const std::filesystem::path& folder);

}  // namespace dculab::engine

#include "engine/chat/chat_template.hpp"

#include <algorithm>
#include <utility>

#include "engine/chat/template_run.hpp"
#include "engine/chat/template_statements.hpp"
#include "fields/json_fields.hpp"
#include "fields/json_text.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

[[nodiscard]] chat::Value value_of(const Node& node) {
  if (node.kind == NodeKind::null) return chat::None{};
  if (node.kind == NodeKind::list) {
    chat::List items;
    for (const Node& child : node.children) items.push_back(value_of(child));
    return items;
  }
  if (node.kind == NodeKind::map) {
    chat::Dict entries;
    for (const Node& child : node.children) entries.emplace_back(child.key, value_of(child));
    return entries;
  }
  if (node.is(ScalarType::flag)) return node.text == "true";
  if (const auto number = integer_of(node)) return *number;
  if (node.is(ScalarType::real) || node.is(ScalarType::integer)) return number_of(node);
  return node.text;
}

// "<s>", or {"content": "<s>", ...}; empty where there is none.
[[nodiscard]] std::string special_token(const JsonFields& fields, std::string_view key) {
  const auto found = std::ranges::find(fields.members(), key, &Node::key);
  const bool is_map = found != fields.members().end() && found->kind == NodeKind::map;
  return is_map ? fields.object(key)->text("content", "") : fields.text(key, "");
}

// Of tokenizer_config.json: a text, or [{"name": "default", "template": "..."}, ...].
[[nodiscard]] std::optional<std::string> template_in(const JsonFields& fields) {
  const auto found = std::ranges::find(fields.members(), "chat_template", &Node::key);
  if (found == fields.members().end() || found->kind == NodeKind::null) return std::nullopt;
  if (found->is(ScalarType::text)) return found->text;
  for (const Node& each : found->children) {
    const Node *name = each.find("name"), *text = each.find("template");
    if (name != nullptr && text != nullptr && name->text == "default" && text->is(ScalarType::text)) return text->text;
  }
  fields.refuse("chat_template", "is neither a text nor a list with a template named default");
}

}  // namespace

struct ChatTemplate::Parts {
  std::string file;
  std::vector<chat::Statement> statements;
  std::string bos_token, eos_token;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string file, std::string bos_token, std::string eos_token) {
  auto parts = std::make_unique<Parts>();
  parts->statements = chat::read_template(source, file);
  parts->file = std::move(file);
  parts->bos_token = std::move(bos_token);
  parts->eos_token = std::move(eos_token);
  parts_ = std::move(parts);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::prompt(const std::vector<ChatMessage>& messages) const {
  chat::List turns;
  for (const ChatMessage& message : messages)
    turns.push_back(chat::Dict{{"role", message.role}, {"content", message.content}});
  const chat::Dict variables = {{"messages", std::move(turns)},   {"add_generation_prompt", true},
                                {"bos_token", parts_->bos_token}, {"eos_token", parts_->eos_token},
                                {"tools", chat::None{}},          {"documents", chat::None{}}};
  return chat::run_template(parts_->statements, variables, parts_->file);
}

std::string ChatTemplate::run(std::string_view variables) const {
  const chat::Value value = value_of(parse_json("variables", 1, variables));
  if (value.dict() == nullptr) throw InputError("variables", "are no JSON object");
  return chat::run_template(parts_->statements, *value.dict(), parts_->file);
}

std::optional<ChatTemplate> read_chat_template(const fs::path& folder) {
  const fs::path config = folder / "tokenizer_config.json", own = folder / "chat_template.jinja";
  std::string bos_token, eos_token;
  std::optional<std::string> source;
  std::string file = own.string();
  if (fs::exists(own)) source = read_model_text(own.string());
  if (fs::exists(config)) {
    const JsonFields fields(config.string(), read_model_text(config.string()));
    bos_token = special_token(fields, "bos_token");
    eos_token = special_token(fields, "eos_token");
    if (!source) {
      source = template_in(fields);
      file = config.string() + ": chat_template";
    }
  }
  if (!source) return std::nullopt;
  ChatTemplate read(*source, file, bos_token, eos_token);
  static_cast<void>(read.prompt({{.role = "user", .content = "Hello"}}));
  return read;
}

}  // namespace dculab::engine

#include "config/conversations_file.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "config/map_reader.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestConversationsFile = std::size_t{1} << 30;
constexpr std::array kHumans = {"human", "user"};
constexpr std::array kModels = {"gpt", "chatgpt", "bing", "bard", "assistant"};

struct Turn {
  std::string from;
  std::string value;
};

std::string item_path(std::string list, std::size_t index) {
  list.append("[").append(std::to_string(index)).append("]");
  return list;
}

// Texts of a turn may be empty: real files have such answers.
void read_text(MapReader& reader, std::string_view key, std::string& target) {
  const Node* node = reader.required(key);
  if (node == nullptr || (node->kind == NodeKind::scalar && node->text.empty())) return;
  reader.read(*node, target);
}

std::vector<Turn> read_turns(const Node& list, const std::string& path, ProblemList& problems) {
  std::vector<Turn> turns;
  for (std::size_t index = 0; index < list.children.size(); ++index) {
    MapReader reader(&list.children[index], item_path(path, index), problems);
    Turn& turn = turns.emplace_back();
    read_text(reader, "from", turn.from);
    read_text(reader, "value", turn.value);
  }
  return turns;
}

std::optional<Exchange> first_exchange(const std::vector<Turn>& turns) {
  const auto is_one_of = [](const std::string& from, const auto& names) { return std::ranges::count(names, from) > 0; };
  for (std::size_t index = 0; index + 1 < turns.size(); ++index)
    if (is_one_of(turns[index].from, kHumans) && is_one_of(turns[index + 1].from, kModels))
      return Exchange{.id = {}, .prompt = turns[index].value, .answer = turns[index + 1].value};
  return std::nullopt;
}

}  // namespace

std::vector<Exchange> read_conversations(const std::string& file, const std::string& text) {
  const Node document = parse_json(file, 1, text);
  if (document.kind != NodeKind::list)
    throw InputError(file,
                     "must be a list of conversations, as in ShareGPT's files: [{\"id\", \"conversations\"}, ...]");
  ProblemList problems(file);
  std::vector<Exchange> exchanges;
  for (std::size_t index = 0; index < document.children.size(); ++index) {
    const std::string path = item_path("", index);
    MapReader reader(&document.children[index], path, problems);
    std::string id;
    if (const Node* node = reader.optional("id"); node != nullptr && !node->text.empty()) reader.read(*node, id);
    const Node* turns = reader.required("conversations");
    if (turns == nullptr) continue;
    if (turns->kind != NodeKind::list) {
      reader.complain(*turns, path + ".conversations: must be a list of {from, value}");
      continue;
    }
    if (auto exchange = first_exchange(read_turns(*turns, path + ".conversations", problems))) {
      exchange->id = id;
      exchanges.push_back(std::move(*exchange));
    }
  }
  problems.throw_if_any();
  if (exchanges.empty()) throw InputError(file, "has no turn of a human that a model answers");
  return exchanges;
}

std::vector<Exchange> read_conversations_file(const std::string& path) {
  return read_conversations(path, read_text_file(path, kLargestConversationsFile));
}

}  // namespace dculab::config

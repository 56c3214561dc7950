#include "config/conversations_file.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "config/map_reader.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"

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

std::optional<Exchange> read_conversation(const Node& conversation, std::size_t index, ProblemList& problems) {
  const std::string path = item_path("", index);
  MapReader reader(&conversation, path, problems);
  std::string id;
  if (const Node* node = reader.optional("id"); node != nullptr && !node->text.empty()) reader.read(*node, id);
  const Node* turns = reader.required("conversations");
  if (turns == nullptr) return std::nullopt;
  if (turns->kind != NodeKind::list) {
    reader.complain(*turns, path + ".conversations: must be a list of {from, value}");
    return std::nullopt;
  }
  auto exchange = first_exchange(read_turns(*turns, path + ".conversations", problems));
  if (exchange) exchange->id = id;
  return exchange;
}

std::vector<Exchange> read_pieces(const std::string& file, const NextPiece& next_piece) {
  ProblemList problems(file);
  std::vector<Exchange> exchanges;
  std::size_t index = 0;
  const Node document = read_json_items(file, next_piece, {.kind = NodeKind::list}, [&](const Node& conversation) {
    if (auto exchange = read_conversation(conversation, index++, problems)) exchanges.push_back(std::move(*exchange));
  });
  if (document.kind != NodeKind::list)
    throw InputError(file,
                     "must be a list of conversations, as in ShareGPT's files: [{\"id\", \"conversations\"}, ...]");
  problems.throw_if_any();
  if (exchanges.empty()) throw InputError(file, "has no turn of a human that a model answers");
  return exchanges;
}

}  // namespace

std::vector<Exchange> read_conversations(const std::string& file, const std::string& text) {
  return read_pieces(file, one_piece(text));
}

std::vector<Exchange> read_conversations_file(const std::string& path) {
  return read_pieces(path, files::read_text_pieces(path, kLargestConversationsFile));
}

}  // namespace dculab::config

// JSON as the same Node tree as YAML, so that one strict reader serves both.
#include <nlohmann/json.hpp>

#include "config/node.hpp"
#include "config/node_builder.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

using Json = nlohmann::json;

// The parser does not say where a value stands, so every value gets the line that the text began on.
class JsonEvents final : public nlohmann::json_sax<Json> {
 public:
  JsonEvents(const std::string& file, int line, NodeBuilder& builder)
      : file_(file), place_{line, 0}, builder_(builder) {}

  bool null() override { return builder_.null(place_), true; }
  bool boolean(bool value) override { return builder_.scalar(place_, value ? "true" : "false"), true; }
  bool number_integer(number_integer_t value) override { return builder_.scalar(place_, std::to_string(value)), true; }
  bool number_unsigned(number_unsigned_t value) override {
    return builder_.scalar(place_, std::to_string(value)), true;
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return builder_.scalar(place_, text), true;
  }
  bool string(string_t& value) override { return builder_.scalar(place_, value), true; }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return builder_.open(place_, NodeKind::map), true; }
  bool key(string_t& value) override { return builder_.key(place_, value), true; }
  bool end_object() override { return builder_.close(), true; }
  bool start_array(std::size_t /*size*/) override { return builder_.open(place_, NodeKind::list), true; }
  bool end_array() override { return builder_.close(), true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string what = error.what();  // "[json.exception...] parse error at line 1, column 9: the reason"
    const std::size_t reason = what.find(": ");
    throw InputError(file_ + ":" + std::to_string(place_.line) + ":" + std::to_string(position) +
                     ": not valid JSON: " + (reason == std::string::npos ? what : what.substr(reason + 2)));
  }

 private:
  const std::string& file_;
  Place place_;
  NodeBuilder& builder_;
};

[[nodiscard]] nlohmann::ordered_json to_json(const Node& node) {
  nlohmann::ordered_json json;
  if (node.kind == NodeKind::scalar) json = node.text;
  if (node.kind == NodeKind::list) json = nlohmann::ordered_json::array();
  if (node.kind == NodeKind::map) json = nlohmann::ordered_json::object();
  for (const Node& child : node.children) {
    if (node.kind == NodeKind::list)
      json.push_back(to_json(child));
    else
      json[child.key] = to_json(child);
  }
  return json;
}

}  // namespace

std::string node_json(const Node& node) {
  return to_json(node).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Node parse_json(const std::string& file, int line, const std::string& text) {
  NodeBuilder builder(file);
  JsonEvents events(file, line, builder);
  Json::sax_parse(text, &events);
  return builder.take();
}

}  // namespace dculab::config

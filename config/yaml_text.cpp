// The only file that knows yaml-cpp. It listens to the parser's events instead of building YAML::Node, because that
// hides duplicate keys, expands aliases and forgets where a key stood.
#include "config/yaml_text.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "core/error.hpp"
#include "fields/node_builder.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestYaml = 1 << 20;

Place place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

class YamlEvents final : public YAML::EventHandler {
 public:
  YamlEvents(const std::string& file, NodeBuilder& builder) : file_(file), builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_extras(mark, "?", anchor);
    builder_.null(place_of(mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse_anchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    if (valid_prefix(value) != value.size())  // yaml-cpp makes a lone byte of the escapes \N and \_
      throw InputError(file_, mark.line + 1, "an escape such as \\N stands for no text here; write \\x85");
    builder_.scalar(place_of(mark), value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    refuse_extras(mark, tag, anchor);
    builder_.open(place_of(mark), NodeKind::list);
  }
  void OnSequenceEnd() override { builder_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuse_extras(mark, tag, anchor);
    builder_.open(place_of(mark), NodeKind::map);
  }
  void OnMapEnd() override { builder_.close(); }

 private:
  // "?" and "!" are what the parser itself gives to plain and to quoted values.
  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) refuse_anchor(mark);
    if (!tag.empty() && tag != "?" && tag != "!")
      throw InputError(file_, mark.line + 1, "tags such as " + in_quotes(tag) + " are not used here; remove it");
  }
  [[noreturn]] void refuse_anchor(const YAML::Mark& mark) const {
    throw InputError(file_, mark.line + 1, "anchors and aliases are not used here; write the value out");
  }

  const std::string& file_;
  NodeBuilder& builder_;
};

// yaml-cpp takes some control characters for the end of the file.
void refuse_control_characters(const std::string& file, const std::string& text) {
  int line = 1;
  for (const char letter : text) {
    if (letter == '\n') ++line;
    const auto code = static_cast<unsigned char>(letter);
    if ((code < 0x20 && letter != '\n' && letter != '\r' && letter != '\t'))
      throw InputError(file, line, "not a text file (byte " + std::to_string(code) + "); save it as UTF-8");
  }
}

}  // namespace

Node parse_yaml(const std::string& file, const std::string& text) {
  if (text.size() > kLargestYaml) throw InputError(file, "is larger than 1 MiB; is it the right file?");
  refuse_control_characters(file, text);
  require_utf8(file, text);
  NodeBuilder builder(file);
  YamlEvents events(file, builder);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(events)) return {};
    Node root = builder.take();
    if (parser.HandleNextDocument(events)) throw InputError(file, "holds more than one document; keep the first");
    return root;
  } catch (const YAML::Exception& error) {
    throw InputError(file, error.mark.line + 1, "not valid YAML: " + error.msg);
  }
}

Node read_yaml_file(const std::string& path) { return parse_yaml(path, files::read_text(path, kLargestYaml)); }

}  // namespace dculab::config

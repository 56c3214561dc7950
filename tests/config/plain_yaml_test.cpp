// The reader of plain YAML, which the build for browsers has in the place of yaml-cpp.
#include "config/plain_yaml.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "config/machine_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

// Lines of places aside: the two count them alike, columns only one.
void require_same(const Node& plain, const Node& whole) {
  REQUIRE(plain.kind == whole.kind);
  REQUIRE(plain.type == whole.type);
  REQUIRE(plain.key == whole.key);
  REQUIRE(plain.text == whole.text);
  REQUIRE(plain.children.size() == whole.children.size());
  for (std::size_t child = 0; child < plain.children.size(); ++child)
    require_same(plain.children[child], whole.children[child]);
}

void require_same(const std::string& file, const std::string& text) {
  INFO(file);
  require_same(parse_plain_yaml(file, text), parse_yaml(file, text));
}

}  // namespace

TEST_CASE("plain YAML: every shipped machine and stack, as yaml-cpp reads it") {
  int count = 0;
  for (const char* folder : {"hwmodels", "stacks"})
    for (const auto& entry : fs::directory_iterator(fs::path(DCULAB_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      require_same(entry.path().string(), files::read_text(entry.path().string(), 1 << 20));
      ++count;
    }
  REQUIRE(count > 40);
}

TEST_CASE("plain YAML: what is written of a machine") {
  const sim::Machine machine = read_machine_file((fs::path(DCULAB_SOURCE_DIR) / "hwmodels/mi300x.yaml").string());
  require_same("machine", machine_yaml(machine));
}

TEST_CASE("plain YAML: forms of values") {
  for (const char* text :
       {"", "# nothing\n", "word", "16", "[1, 2, three words]", "{a: 1, b: [x, {c: d}]}",
        "a: 1\nb:\n  - x\n  - y: 2\n    z: 3\n", "list:\n- 1\n- 2\nnext: 3\n",
        "text: \"# no comment: \\\"quoted\\\" \\u00e9 \\x41\"  # comment\n", "single: 'it''s'\n",
        "empty:\nnull_too: ~\n", "long: [1,\n  2,\n  3]\nafter: x\n", "a:\n  b:\n    c: 1\n  d: 2\n",
        "time: 12:30\nurl: http://example.org/#a\n", "\"quoted key\": 1\n", "none: {}\nno_items: []\n"})
    require_same(text, text);
}

TEST_CASE("plain YAML: what it does not read, it refuses") {
  for (const char* text : {"a: &anchor 1\n", "a: *anchor\n", "a: |\n  text\n", "a: !!int 1\n", "a: [1, 2\n",
                           "a: \"open\n", "a: 1\n   b: 2\n", "a: \"x\" y\n", "a: {b}\n", "- 1\nb: 2\n", "a: \xff\n"}) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_plain_yaml("file", text), InputError);
  }
}

}  // namespace dculab::config

#include "engine/chat/chat_template.hpp"

#include <cstdlib>
#include <set>

#include "core/error.hpp"
#include "fields/json_fields.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using engine::ChatTemplate;

namespace {

// What a template is refused with, at the latest when it runs.
std::string refusal_of(const std::string& source) {
  try {
    static_cast<void>(ChatTemplate(source, "T").run("{}"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

// What scripts/golden/make_chat_template_goldens.py wrote.
class Golden {
 public:
  explicit Golden(const std::string& file)
      : root_(parse_json(file, 1, files::read_text(file, files::kLargestText))),
        variables_(root_.find("variables")->children) {}

  [[nodiscard]] const std::vector<Node>& cases() const { return root_.find("cases")->children; }

  // Empty: none.
  [[nodiscard]] std::string difference(const Node& golden_case) const {
    const Node* output = golden_case.find("output");
    std::string prompt;
    try {
      const ChatTemplate read(golden_case.find("template")->text, "T");
      prompt = read.run(json_text(variables_[static_cast<std::size_t>(*integer_of(*golden_case.find("variables")))]));
    } catch (const InputError& error) {
      return output == nullptr ? "" : error.what();
    }
    if (output == nullptr) return "gives " + prompt + " where Jinja2 fails";
    return prompt == output->text ? "" : "gives " + prompt + " where Jinja2 gives " + output->text;
  }

 private:
  Node root_;
  const std::vector<Node>& variables_;
};

}  // namespace

TEST_CASE("templates give what Jinja2 gives", "[chat]") {
  const std::string file = DCULAB_SOURCE_DIR "/tests/golden/chat_templates.json";
  const Golden golden(file);
  REQUIRE(golden.cases().size() > 100);
  for (const Node& each : golden.cases()) {
    CAPTURE(each.find("template")->text);
    REQUIRE(golden.difference(each).empty());
  }
}

// scripts/chat-templates gives it those of model families. Two need more than the subset: Seed-OSS dicts by numbers,
// Hunyuan the method format().
TEST_CASE("templates of a file give what Jinja2 gives", "[.chat_templates]") {
  const char* file = std::getenv("DCULAB_CHAT_TEMPLATES");
  REQUIRE(file != nullptr);
  const Golden golden(file);
  std::set<std::string> all, others;
  for (const Node& each : golden.cases()) {
    const std::string& source = each.find("template")->text;
    all.insert(source);
    if (const std::string difference = golden.difference(each); !difference.empty() && others.insert(source).second)
      WARN(source.substr(0, 200) << "\n...\n" << difference);
  }
  WARN(all.size() - others.size() << " of " << all.size() << " templates give what Jinja2 gives");
  REQUIRE(all.size() > 60);
  REQUIRE(others.size() <= 2);
}

TEST_CASE("a construct outside of the subset is named, with its line", "[chat]") {
  REQUIRE(refusal_of("a\n{% include 'x' %}").starts_with("T:2: {% include %} is not in the subset"));
  REQUIRE(refusal_of("{% call m() %}{% endcall %}").starts_with("T:1: {% call %} is not in the subset"));
  REQUIRE(refusal_of("\n\n{{ x | groupby('a') }}").starts_with("T:3: the filter 'groupby' is not in the subset"));
  REQUIRE(refusal_of("{{ x is upper }}").starts_with("T:1: the test 'upper' is not in the subset"));
  REQUIRE(refusal_of("{{ x.format(1) }}").starts_with("T:1: the method 'format' is not in the subset"));
  REQUIRE(refusal_of("{{ cycler(1) }}").starts_with("T:1: the function 'cycler' is not in the subset"));
  REQUIRE(refusal_of("{% if x %}{{ [] | sort }}{{ x.append(1) }}{% endif %}") == "read");  // not reached
  REQUIRE(refusal_of("{% for x in y recursive %}{% endfor %}").find("recursive") != std::string::npos);
}

TEST_CASE("what is no template is refused with its line", "[chat]") {
  REQUIRE(refusal_of("{{ x").find("T:1: the tag that begins here is not closed") == 0);
  REQUIRE(refusal_of("a\n{# x").find("T:2: the comment that begins here is not closed") == 0);
  REQUIRE(refusal_of("{% if x %}").find("the template ends before 'endif'") != std::string::npos);
  REQUIRE(refusal_of("{{ 'x }}").find("the text that begins here is not closed") != std::string::npos);
  REQUIRE(refusal_of("{{ x ? y }}").find("no expression has '?'") != std::string::npos);
  REQUIRE(refusal_of("{{ (x] }}").find("']' closes nothing") != std::string::npos);
  REQUIRE(refusal_of("{{ }}").find("expected a value") != std::string::npos);
  REQUIRE(refusal_of("{% break %}").find("outside of a loop") != std::string::npos);
  REQUIRE(refusal_of("{{ " + std::string(500, '(') + "x" + std::string(500, ')') + " }}").find("more than") !=
          std::string::npos);
  std::string blocks;
  for (int depth = 0; depth < 300; ++depth) blocks += "{% if x %}";
  REQUIRE(refusal_of(blocks).find("more than") != std::string::npos);
}

TEST_CASE("a template that does not end, or makes too much, is stopped", "[chat]") {
  const ChatTemplate endless("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "T");
  REQUIRE_THROWS_AS(endless.run("{}"), InputError);
  const ChatTemplate long_loop(
      "{% for a in range(100000) %}{% for b in range(100000) %}{{ b }}{% endfor %}{% endfor %}", "T");
  REQUIRE_THROWS_AS(long_loop.run("{}"), InputError);
  const ChatTemplate long_text("{{ 'x' * 1000000000 * 1000 }}", "T");
  REQUIRE_THROWS_AS(long_text.run("{}"), InputError);
  const ChatTemplate many("{{ range(100000000000) }}", "T");
  REQUIRE_THROWS_AS(many.run("{}"), InputError);
}

TEST_CASE("a folder's template is found where models have it", "[chat]") {
  const files::test::TemporaryFolder folder;
  const auto prompt = [&] {
    return engine::read_chat_template(folder.path())->prompt({{.role = "user", .content = "hi"}});
  };
  REQUIRE_FALSE(engine::read_chat_template(folder.path()));
  const std::string source =
      R"({{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %})";
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": ")" + source + "\"}");
  REQUIRE(prompt() == "<s>user:hi</s>");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "x"},
      {"name": "default", "template": "{{ messages[0].content }}"}]})");
  REQUIRE(prompt() == "hi");
  folder.write("chat_template.jinja", "own {{ messages | length }}");
  REQUIRE(prompt() == "own 1");
  folder.write("tokenizer_config.json", R"({"chat_template": 3})");
  REQUIRE(prompt() == "own 1");
}

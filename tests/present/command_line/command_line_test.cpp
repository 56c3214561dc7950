// Completions and manual pages of a small program; tests/cli/command_line_test.py asks shells and groff about dculab's.
#include <string>

#include "present/command_line/completion.hpp"
#include "present/command_line/manual_page.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] CommandWords small_program() {
  OptionWords phase{.flags = {"--phase", "-p"}, .placeholder = "TEXT", .help = "which half", .values = Values::words};
  phase.words = {"prefill", "decode"};
  OptionWords machine{.flags = {"--machine"}, .placeholder = "TEXT", .help = "it's [one]", .values = Values::names};
  machine.kind = "machine";
  machine.is_required = true;
  const OptionWords file{.flags = {}, .placeholder = "FILE", .help = ".what it reads", .values = Values::files};
  const OptionWords flag{.flags = {"--all"}, .placeholder = "", .help = "everything", .values = Values::none};
  const CommandWords table{.name = "rates", .help = "One table", .options = {flag}, .commands = {}};
  return {.name = "tool",
          .help = "Does it",
          .options = {flag},
          .commands = {{.name = "predict", .help = "A step", .options = {phase, machine, file}, .commands = {}},
                       {.name = "tables", .help = "Tables", .options = {}, .commands = {table}}}};
}

TEST_CASE("bash learns what may stand where") {
  const std::string script = bash_completion(small_program());
  for (const char* const part :
       {"'tool predict'|'tool tables'|'tool tables rates') command=",
        "'tool predict --phase'|'tool predict -p') words='prefill decode'",
        "'tool predict --machine') files=yes words=$(\"${COMP_WORDS[0]}\" completion --names machine",
        "-*) words=' --phase -p --machine' ;;\n        *) files=yes ;;", "complete -F _tool tool\n"})
    CHECK_THAT(script, ContainsSubstring(part));
}

TEST_CASE("zsh and fish quote what help says") {
  const std::string zsh = zsh_completion(small_program());
  CHECK(zsh.starts_with("#compdef tool\n"));
  CHECK_THAT(zsh, ContainsSubstring("'*--machine[it'\\''s \\[one\\]]:TEXT:{_tool_names machine}'"));
  CHECK_THAT(zsh, ContainsSubstring("'*--phase[which half]:TEXT:(prefill decode)'"));
  CHECK_THAT(zsh, ContainsSubstring("_tool_tables_rates() {"));
  const std::string fish = fish_completion(small_program());
  CHECK_THAT(fish,
             ContainsSubstring(
                 "-n '__tool_is predict' -l machine -r -F -a '(tool completion --names machine)' -d 'it\\'s [one]'"));
  CHECK_THAT(fish, ContainsSubstring("-n '__tool_is tables' -f -a rates -d 'One table'"));
}

TEST_CASE("a page of the manual for each command") {
  const std::vector<ManualPage> pages = manual_pages(small_program(), "1.2");
  REQUIRE(pages.size() == 4);
  CHECK(pages[0].name == "tool");
  CHECK(pages[3].name == "tool-tables-rates");
  CHECK_THAT(pages[1].text, ContainsSubstring(".TH \"TOOL\\-PREDICT\" 1 \"\" \"tool 1.2\""));
  CHECK_THAT(pages[1].text, ContainsSubstring("\\fBtool predict\\fR [\\fIOPTIONS\\fR] [\\fIFILE\\fR]\n"));
  CHECK_THAT(pages[1].text,
             ContainsSubstring("\\fB\\-\\-phase\\fR, \\fB\\-p\\fR \\fITEXT\\fR\nwhich half (prefill, decode)\n"));
  CHECK_THAT(pages[1].text, ContainsSubstring("\n\\&.what it reads\n"));
  CHECK_THAT(pages[2].text, ContainsSubstring("\\fBtool\\-tables\\-rates\\fR(1)\nOne table\n"));
}

}  // namespace
}  // namespace dculab::present

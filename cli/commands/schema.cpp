// `dculab schema`: the JSON Schema of a command's answer, or of a file that people write.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "files/output.hpp"
#include "present/output/standard_output.hpp"
#include "present/schema/answer_schemas.hpp"

namespace dculab::cli {
namespace {

struct SchemaChoices {
  std::string name;
  present::OutputOptions output;
};

void write_schema(const SchemaChoices& choices) {
  const std::string text = present::find_answer_schema(choices.name).make().dump(2) + "\n";
  if (choices.output.file.empty())
    present::print(text);
  else
    files::write_file_atomically(choices.output.file, text);
}

}  // namespace

void add_schema(CLI::App& app) {
  CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of a command's answer or of a file");
  auto choices = std::make_shared<SchemaChoices>();
  command
      ->add_option("name", choices->name,
                   "A command, or machine, stack, scenario or trace for files; without it, a list of all")
      ->option_text("NAME");
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab schema predict"});
  command->callback([choices] {
    if (choices->name.empty())
      present::show(present::schemas_report(), choices->output);
    else
      write_schema(*choices);
  });
}

}  // namespace dculab::cli

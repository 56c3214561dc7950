// `dculab serve`: an OpenAI-compatible server of the engine.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "bindings/http/serve.hpp"
#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/generator_choices.hpp"
#include "core/version.hpp"
#include "fields/printable_text.hpp"
#include "present/output/standard_output.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct ServeChoices {
  http::ServeQuestion question;
  GeneratorChoices generator;
};

void say_ready(const http::ServerReady& ready) {
  if (!ready.no_chat.empty()) std::cerr << printable("no chat: " + ready.no_chat) << '\n';
  if (!ready.fewer_wait.empty()) std::cerr << ready.fewer_wait << '\n';
  present::print(printable("serving " + ready.model + " on " + ready.url) + "\n");
  present::check_standard_output();
}

void add_server_options(CLI::App& command, http::ServeQuestion& question) {
  command.add_option("--host", question.http.host, "Address to listen on; 0.0.0.0 for every client that can reach it");
  command.add_option("--port", question.http.port, "Port to listen on; 0 takes a free one, which is printed")
      ->check(between(0, 65535));
  command.add_option("--served-model-name", question.served_name,
                     "The model's name for clients; default: the folder's");
  command
      .add_option("--max-waiting", question.most_waiting,
                  "Requests that may wait beside those that run; more are refused with status 503")
      ->check(between(0, 8192));
  reads(command.add_option("--machine", question.machine,
                           "Machine whose predicted step times the page shows beside the measured ones: a file, which "
                           "`dculab probe` writes, or a name"),
        study::try_find_machine);
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "Serve a model to OpenAI's clients with the engine");
  auto choices = std::make_shared<ServeChoices>();
  reads(
      command->add_option("--model", choices->question.model, "Hugging Face folder, or a name under scenarios/models"),
      study::try_find_model)
      ->required();
  add_server_options(*command, choices->question);
  add_generator_options(*command, choices->generator);
  add_examples(*command, {"dculab serve --model dculab-tiny --port 8000"});
  command->callback([choices, command] {
    http::ServeQuestion question = choices->question;
    question.generator = generator_options(*command, choices->generator);
    question.http.version = version();
    http::serve(question, say_ready);
  });
}

}  // namespace dculab::cli

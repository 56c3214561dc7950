#include "cli/scenario/server_choices.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "bindings/http/load_client.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/benchmarks/vllm_writer.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr int kPromptTokens = 256, kOutputTokens = 128;
constexpr int kMostRequests = 100'000, kMostAtOnce = 4096;

}  // namespace

CLI::Option* add_server_choices(CLI::App& command, ServerChoices& choices) {
  CLI::Option* server = command
                            .add_option("--server", choices.url,
                                        "Measure this OpenAI-compatible server first, with random prompts of "
                                        "--prompt-tokens (256) and answers of --output-tokens (128)")
                            ->option_text("URL");
  command.add_option("--served-model-name", choices.served_model, "With --server: its name there; default: its first")
      ->needs(server);
  command.add_option("--requests", choices.requests, "With --server: how many are sent")
      ->check(between(1, kMostRequests))
      ->needs(server);
  command
      .add_option("--concurrency", choices.max_concurrency, "With --server: requests at a time; default: all at once")
      ->check(between(1, kMostAtOnce))
      ->needs(server);
  add_output_file(command, "--save-result", choices.save_result,
                  "With --server: also write what was measured as `vllm bench serve --save-detailed` would");
  command.get_option("--save-result")->needs(server);
  return server;
}

void measure_server(const ServerChoices& choices, study::BenchmarkQuestion& question) {
  if (question.model.empty()) throw InputError("--server: name the model it serves by --model: its shape is predicted");
  if (question.machine.empty()) throw InputError("--server: name the machine it runs on by --machine");
  if (question.stack.empty()) throw InputError("--server: name the program that serves by --stack");
  if (choices.max_concurrency == 0 && choices.requests > kMostAtOnce)
    throw InputError("--requests",
                     "more than " + std::to_string(kMostAtOnce) + " are not sent at once; give --concurrency");
  const ModelShape shape = read_model_shape(study::find_model(question.model));
  http::ServerLoad load{.url = choices.url,
                        .served_model = choices.served_model,
                        .requests = choices.requests,
                        .prompt_tokens = question.prompt_tokens > 0 ? question.prompt_tokens : kPromptTokens,
                        .output_tokens = question.output_tokens > 0 ? question.output_tokens : kOutputTokens,
                        .max_concurrency = choices.max_concurrency,
                        .vocab_size = shape.vocab_size};
  ProgressBar bar;
  const config::VllmRun run =
      http::load_server(load, [&bar](double share) { bar.update("measuring the server", share); });
  bar.clear();
  std::string text = config::vllm_serve_json(run);
  if (!choices.save_result.empty()) files::write_file_atomically(choices.save_result, text);
  question.texts.emplace_back(choices.url, std::move(text));
  question.prompt_tokens = question.output_tokens = 0;  // the result has them
}

}  // namespace dculab::cli

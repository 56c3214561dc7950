#include "cli/scenario/server_choices.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/benchmarks/vllm_writer.hpp"
#include "files/output.hpp"

namespace dculab::cli {
namespace {

constexpr int kMostRequests = 100'000, kMostAtOnce = 960;

}  // namespace

CLI::Option* add_server_choices(CLI::App& command, ServerChoices& choices) {
  CLI::Option* server = command
                            .add_option("--server", choices.server.url,
                                        "Measure this OpenAI-compatible server first, with random prompts of "
                                        "--prompt-tokens (256) and answers of --output-tokens (128)")
                            ->option_text("URL");
  command
      .add_option("--served-model-name", choices.server.served_model,
                  "With --server: its name there; default: its first")
      ->needs(server);
  command
      .add_option("--api-key", choices.server.api_key,
                  "With --server: its key; better in the environment as OPENAI_API_KEY, which other users do not see")
      ->needs(server);
  command.add_option("--requests", choices.server.requests, "With --server: how many are sent")
      ->check(between(1, kMostRequests))
      ->needs(server);
  command
      .add_option("--concurrency", choices.server.max_concurrency,
                  "With --server: requests at a time; default: all at once")
      ->check(between(1, kMostAtOnce))
      ->needs(server);
  add_output_file(command, "--save-result", choices.save_result,
                  "With --server: also write what was measured as `vllm bench serve --save-detailed` would");
  command.get_option("--save-result")->needs(server);
  return server;
}

void measure_server(const ServerChoices& choices, study::BenchmarkQuestion& question) {
  http::ServerQuestion server = choices.server;
  if (const char* key = std::getenv("OPENAI_API_KEY"); key != nullptr && server.api_key.empty()) server.api_key = key;
  ProgressBar bar;
  const config::VllmRun run =
      http::measure_server(server, question, [&bar](double share) { bar.update("measuring the server", share); });
  bar.clear();
  std::string text = config::vllm_serve_json(run);
  if (!choices.save_result.empty()) files::write_file_atomically(choices.save_result, text);
  question.texts.emplace_back(server.url, std::move(text));
  question.prompt_tokens = question.output_tokens = 0;  // the result has them
}

}  // namespace dculab::cli

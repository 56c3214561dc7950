// `dculab predict`: one step on one machine, op by op.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "present/study/prediction_report.hpp"

namespace dculab::cli {
namespace {

struct PredictChoices {
  study::StepQuestion step;
  present::OutputOptions output;
};

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App* command = app.add_subcommand("predict", "Predict one step on one machine, op by op");
  auto choices = std::make_shared<PredictChoices>();
  add_step_choices(*command, choices->step);
  add_tensor_parallel_size(*command, choices->step.set);
  add_report_options(*command, choices->output);
  add_examples(*command, {"dculab predict --model llama-3-8b --machine k100-ai --stack vllm --batch 16 --context 2048",
                          "dculab predict --model qwen3-32b --machine h100-sxm --stack vllm --tensor-parallel-size 4"});
  command->callback([choices] {
    present::show(present::prediction_report(study::predict(study::step_scenario(choices->step))), choices->output);
  });
}

}  // namespace dculab::cli

// `dculab tables intensity`, `footprint` and `latents`: the teaching tables.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/weight_format_text.hpp"
#include "present/study/teaching_tables.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct TableChoices {
  study::TableModel model;
  std::string phase = "prefill";
  int tokens = 2048;
  int batch = 1;
  std::string dtype = "f16";
  std::string weights = "checkpoint";
  std::string kv_dtype = "f16";
  int layer = 0;
  std::vector<std::string> machines;
  present::OutputOptions output;
};

[[nodiscard]] present::Report report_intensity(const TableChoices& choices) {
  const study::IntensityQuestion question{
      .model = choices.model,
      .layer = choices.layer,
      .phase = choices.phase == "decode" ? Phase::decode : Phase::prefill,
      .both_phases = choices.phase == "both",
      .tokens = choices.tokens,
      .batch = choices.batch,
      .dtype = parse_dtype_option("--dtype", choices.dtype, "f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8 or int4"),
      .machines = choices.machines};
  return present::intensity_report(question, study::layer_intensity(question));
}

[[nodiscard]] present::Report report_footprint(const TableChoices& choices) {
  study::FootprintQuestion question{
      .model = choices.model,
      .weights = {},
      .request = {.tokens = choices.tokens,
                  .batch = choices.batch,
                  .kv_cache_dtype = parse_kv_dtype_option("--kv-dtype", choices.kv_dtype)},
      .machines = choices.machines};
  if (choices.weights != "checkpoint")
    question.weights = parse_option("--dtype", choices.weights, config::parse_weight_format);
  return present::footprint_report(question, study::model_footprint(question));
}

[[nodiscard]] present::Report report_latents(const study::StepQuestion& choices) {
  const study::LatentFormsQuestion question{
      .scenario = study::step_scenario(choices), .batch = choices.batch, .context = choices.context};
  return present::latent_forms_report(question, study::compare_latent_forms(question));
}

void add_latents(CLI::App& tables) {
  CLI::App* command = tables.add_subcommand("latents", "MLA: the cheaper of its two forms, by new tokens");
  auto choices = std::make_shared<study::StepQuestion>();
  auto output = std::make_shared<present::OutputOptions>();
  reads(command->add_option("--model", choices->model, "Folder with config.json, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  reads(command->add_option("--machine", choices->machine, "Name under hwmodels, or a file"), study::try_find_machine)
      ->required();
  add_stack_option(*command, choices->stack);
  command->add_option("--batch", choices->batch, "Sequences")->check(between(1, kLargestBatch));
  command->add_option("--context", choices->context, "Tokens of each, the new ones among them")
      ->check(between(2, kLongestContext));
  command->add_option("--set", choices->set, "key=value: any scenario key, e.g. deployment.tensor_parallel_size=8");
  add_output_options(*command, *output);
  add_examples(*command, {"dculab tables latents --model deepseek-v2-lite --machine z100 --context 4096"});
  command->callback([choices, output] { present::show(report_latents(*choices), *output); });
}

}  // namespace

void add_tables(CLI::App& app) {
  CLI::App* tables = app.add_subcommand("tables", "Print the teaching tables of the generative-inference lecture");
  tables->require_subcommand(1);
  add_examples(*tables, {"dculab tables intensity --model llama-3-8b"});
  const auto add = [tables](const char* name, const char* help, present::Report (*make)(const TableChoices&)) {
    CLI::App* command = tables->add_subcommand(name, help);
    auto choices = std::make_shared<TableChoices>();
    reads(command->add_option("--model", choices->model.name,
                              "Folder with config.json, or a name under scenarios/models"),
          study::try_find_model)
        ->required();
    command->add_option("--tokens", choices->tokens, "L: prompt length, or tokens cached so far")
        ->check(between(1, kLongestContext));
    command->add_option("--batch", choices->batch, "Sequences")->check(between(1, kLargestBatch));
    command->add_option("--kv-heads", choices->model.kv_heads, "KV heads instead of the model's own")
        ->check(at_least(1));
    command->add_flag("--lecture", choices->model.lecture, "MHA and a plain MLP of width 4D, as the lecture has it");
    command->callback([choices, make] { present::show(make(*choices), choices->output); });
    return std::pair{command, choices};
  };
  const auto [intensity, intensity_choices] =
      add("intensity", "FLOP, bytes and FLOP/byte of every op of a layer", report_intensity);
  add_report_options(*intensity, intensity_choices->output);
  add_examples(*intensity, {"dculab tables intensity --model llama-3-8b --phase decode --tokens 2048",
                            "dculab tables intensity --model llama-2-7b --lecture --phase both --machine z100 k100-ai "
                            "--report intensity.html"});
  intensity->add_option("--phase", intensity_choices->phase, "prefill, decode or both")
      ->check(CLI::IsMember({"prefill", "decode", "both"}));
  reads(
      intensity->add_option("--machine", intensity_choices->machines,
                            "Machines whose ridge point, peak FLOP/s / bandwidth, is asked for: files, or names under "
                            "hwmodels"),
      study::try_find_machine);
  intensity->add_option("--dtype", intensity_choices->dtype, "Of weights, activations and KV");
  intensity->add_option("--layer", intensity_choices->layer, "Of which layer, where they differ: 0 is the first")
      ->check(at_least(0));
  const auto [footprint, footprint_choices] =
      add("footprint", "Weights and KV cache for MHA, GQA, MQA and MLA", report_footprint);
  add_examples(*footprint, {"dculab tables footprint --model llama-3-8b --tokens 8192 --batch 16"});
  footprint->add_option("--dtype", footprint_choices->weights,
                        "Of the weights: checkpoint (what config.json says), f16, bf16, int8, gptq-int4");
  footprint->add_option("--kv-dtype", footprint_choices->kv_dtype, "Of the KV cache");
  reads(footprint->add_option("--machine", footprint_choices->machines,
                              "Machines whose memory the KV cache has to fit in: files, or names under hwmodels"),
        study::try_find_machine);
  add_report_options(*footprint, footprint_choices->output);
  add_latents(*tables);
}

}  // namespace dculab::cli

// `dculab tables intensity` and `footprint`: the teaching tables.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "model/plan_step.hpp"
#include "sim/tables/footprint.hpp"
#include "sim/tables/intensity.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct TableChoices {
  std::string model;
  std::string phase = "prefill";
  int tokens = 2048;
  int batch = 1;
  std::string dtype = "f16";
  std::string kv_dtype = "f16";
  int kv_heads = 0;
  int layer = 0;
  bool lecture = false;
  present::OutputOptions output;
};

// The lecture's own case: MHA and a plain MLP of width 4D, at this model's D and number of heads.
[[nodiscard]] ModelShape as_in_the_lecture(ModelShape model) {
  model.name += " as in the lecture (MHA, 4D MLP)";
  const int heads = model.heads().num_attention_heads;
  LayerKind layer = model.kinds.front();
  Gqa attention{.heads = {heads, heads, model.hidden_size / heads}};
  if (layer.has_kv_heads()) {
    attention.position = layer.gqa().position;
    attention.qkv_bias = layer.gqa().qkv_bias;
    attention.output_bias = layer.gqa().output_bias;
  }
  attention.position.rotary_dim = 0;
  layer.attention = attention;
  layer.experts.reset();
  model.kv_sources.clear();
  // The plain form of SiLU stands for the lecture's ReLU.
  layer.mlp = {4 * model.hidden_size, MlpKind::plain, ActivationKind::silu, layer.mlp.bias};
  set_layers(model, model.num_layers(), layer);
  return model;
}

[[nodiscard]] ModelShape choose_model(const TableChoices& choices) {
  ModelShape model = read_model_shape(study::find_model(choices.model));
  if (choices.kv_heads > 0 && model.has_latents())
    throw InputError("--kv-heads: " + model.name + " keeps latents, which all heads share");
  if (choices.kv_heads > 0 && model.has_unequal_heads())
    throw InputError("--kv-heads: layers of " + model.name + " have heads that differ");
  if (choices.kv_heads > 0) model = with_kv_heads(model, choices.kv_heads);
  if (choices.lecture) model = as_in_the_lecture(model);
  if (const auto found = problems(model); !found.empty())
    throw InputError(std::string(choices.lecture ? "--lecture: " : "--kv-heads: ") + found.front());
  return model;
}

[[nodiscard]] Dtype choose_dtype(const char* option, const std::string& text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  throw InputError(std::string(option) + ": '" + text + "' is not a dtype; use f32, f16, bf16, fp8_e4m3, fp8_e5m2, " +
                   "int8 or int4");
}

void add_intensity_row(present::Report& report, const sim::IntensityRow& row, bool is_total) {
  const std::string formula = row.formula == sim::LectureFormula::none ? "" : std::string(sim::text(row.formula));
  const bool moves = row.intensity.has_value();
  report.tables.front().rows.push_back(
      {is_total ? "" : std::to_string(row.number), std::string(row.op), std::string(row.computation),
       moves ? present::Cell(present::number(row.flops.value(), 4), row.flops.value()) : present::Cell("-", ""),
       moves ? present::Cell(config::short_text(row.bytes), row.bytes.value()) : present::Cell("-", ""),
       moves ? present::Cell(present::number(row.intensity->value(), 4), row.intensity->value())
             : present::Cell("-", ""),
       formula});
  present::Json entry{{"number", row.number},
                      {"op", row.op},
                      {"computation", row.computation},
                      {"flops", row.flops.value()},
                      {"bytes", row.bytes.value()},
                      {"intensity", moves ? present::Json(row.intensity->value()) : present::Json(nullptr)}};
  if (!formula.empty()) entry["lecture_formula"] = formula;
  if (is_total)
    report.json["total"] = std::move(entry);
  else
    report.json["rows"].push_back(std::move(entry));
}

[[nodiscard]] std::string attention_text(const LayerKind& layer) {
  if (const Mla* latent = layer.mla())
    return std::to_string(latent->num_attention_heads) + " query heads of " + std::to_string(latent->qk_nope_head_dim) +
           " + " + std::to_string(latent->qk_rope_head_dim) + " values, latents of " +
           std::to_string(latent->kv_lora_rank) + " + " + std::to_string(latent->qk_rope_head_dim);
  if (const CompressedAttention* entries = layer.compressed())
    return std::to_string(entries->num_attention_heads) + " query heads of " + std::to_string(entries->head_dim) +
           ", entries of " + std::to_string(entries->compress_ratio) + " tokens";
  if (const GatedDeltaNet* net = layer.delta_net())
    return std::to_string(net->num_value_heads) + " states of " + std::to_string(net->key_head_dim) + " x " +
           std::to_string(net->value_head_dim);
  const Heads& heads = layer.gqa().heads;
  return "H = " + std::to_string(heads.head_dim) + ", " + std::to_string(heads.num_attention_heads) + " query heads, " +
         std::to_string(heads.num_key_value_heads) + " KV heads";
}

[[nodiscard]] present::Report intensity_report(const TableChoices& choices) {
  const ModelShape model = choose_model(choices);
  const Phase phase = choices.phase == "decode" ? Phase::decode : Phase::prefill;
  const Dtype dtype = choose_dtype("--dtype", choices.dtype);
  if (choices.layer >= model.num_layers())
    throw InputError("--layer: " + model.name + " has layers 0 to " + std::to_string(model.num_layers() - 1));
  const sim::IntensityTable table =
      sim::intensity_table(model, choices.layer, phase, choices.tokens, choices.batch, dtype);
  present::Report report{"dculab/tables-intensity/1", {}, {present::Table{}}, present::Json::object()};
  report.json = {{"model", model.name},    {"phase", choices.phase}, {"tokens", choices.tokens},
                 {"batch", choices.batch}, {"dtype", name(dtype)},   {"rows", present::Json::array()}};
  const LayerKind& layer = model.layer(choices.layer);
  const std::string label = kind_label(model, model.layers[static_cast<std::size_t>(choices.layer)]);
  report.heading = {model.name + ": one layer" + (label.empty() ? "" : " (" + label + ")") + ", " + choices.phase +
                    ", L = " + std::to_string(choices.tokens) +
                    (phase == Phase::decode ? " tokens cached" : " tokens") + ", batch " +
                    std::to_string(choices.batch) + ", " + std::string(name(dtype)) +
                    "; D = " + std::to_string(model.hidden_size) + ", " + attention_text(layer)};
  report.tables.front().columns = {"no", "op", "computation", "FLOP", "bytes", "FLOP/byte", "the lecture's formula"};
  report.tables.front().first_column = present::Align::right;
  for (const sim::IntensityRow& row : table.rows) add_intensity_row(report, row, false);
  add_intensity_row(report, table.total, true);
  present::add_warnings(report, model.notes);
  report.tables.front().notes = {
      "One multiply-add is 2 FLOP. Every op reads its inputs from memory and writes its output there, scores included;",
      "what a fused kernel moves is `dculab predict`."};
  return report;
}

// `own`: the model's.
void add_footprint_row(present::Report& report, const sim::Footprint& row, const ModelShape& model,
                       const sim::Footprint& own) {
  const bool mha = row.kv_heads == model.heads().num_attention_heads;
  const bool has_entries = row.is_latent && model.has_compressed_entries();
  const std::string kind = has_entries         ? "entries"
                           : row.is_latent     ? "MLA"
                           : mha               ? "MHA"
                           : row.kv_heads == 1 ? "MQA"
                                               : "GQA";
  const bool is_own = row.is_latent == own.is_latent && row.kv_heads == own.kv_heads;
  report.tables.front().rows.push_back(
      {has_entries     ? "-"
       : row.is_latent ? "latents"
                       : std::to_string(row.kv_heads),
       is_own ? kind + " *" : kind, present::Cell(config::short_text(row.weight_bytes), row.weight_bytes.value()),
       present::Cell(config::short_text(row.kv_bytes), row.kv_bytes.value()),
       present::Cell(config::short_text(row.kv_bytes_per_token), row.kv_bytes_per_token.value()),
       present::Cell(config::short_text(row.layer_weight_bytes), row.layer_weight_bytes.value()),
       present::Cell(config::short_text(row.layer_kv_bytes), row.layer_kv_bytes.value()),
       present::Cell(present::exact_number(std::floor(row.crossover_tokens)) + " tokens", row.crossover_tokens)});
  report.json["rows"].push_back({{"attention", has_entries     ? "entries"
                                               : row.is_latent ? "mla"
                                                               : "gqa"},
                                 {"num_key_value_heads", row.kv_heads},
                                 {"weight_bytes", row.weight_bytes.value()},
                                 {"kv_bytes", row.kv_bytes.value()},
                                 {"kv_bytes_per_token", row.kv_bytes_per_token.value()},
                                 {"crossover_tokens", row.crossover_tokens}});
}

[[nodiscard]] sim::FootprintRequest footprint_request(const TableChoices& choices, const ModelShape& model) {
  EngineOptions options;
  options.kv_cache_dtype = parse_kv_dtype_option("--kv-dtype", choices.kv_dtype);
  if (const auto found = problems(options, model); !found.empty()) throw InputError("--kv-dtype", found.front());
  return {.tokens = choices.tokens,
          .batch = choices.batch,
          .weights = parse_option("--dtype", choices.dtype, config::parse_weight_format),
          .kv_cache_dtype = options.kv_cache_dtype};
}

[[nodiscard]] present::Report footprint_report(const TableChoices& choices) {
  const ModelShape model = choose_model(choices);
  const sim::FootprintRequest request = footprint_request(choices, model);
  const sim::Footprint chosen = sim::footprint(model, request);
  present::Report report{"dculab/tables-footprint/1", {}, {present::Table{}}, present::Json::object()};
  report.heading = {model.name + ": " + std::to_string(choices.batch) + " sequences of " +
                    std::to_string(choices.tokens) + " tokens, weights " + choices.dtype + ", KV " + choices.kv_dtype};
  present::Table& table = report.tables.front();
  table.columns = {"KV heads",      "",         "weights",          "KV cache", "KV / token",
                   "layer weights", "layer KV", "KV > weights from"};
  report.json = {{"model", model.name},
                 {"num_key_value_heads", model.heads().num_key_value_heads},
                 {"weight_bytes", chosen.weight_bytes.value()},
                 {"kv_bytes", chosen.kv_bytes.value()},
                 {"kv_bytes_in_windows", chosen.kv_in_windows.value()},
                 {"kv_bytes_per_token", chosen.kv_bytes_per_token.value()},
                 {"layer_weight_bytes", chosen.layer_weight_bytes.value()},
                 {"layer_kv_bytes", chosen.layer_kv_bytes.value()},
                 {"crossover_tokens", chosen.crossover_tokens},
                 {"rows", present::Json::array()}};
  const std::vector<sim::Footprint> rows = sim::footprint_table(model, request);
  for (const sim::Footprint& row : rows) add_footprint_row(report, row, model, chosen);
  if (chosen.kv_in_windows < chosen.kv_bytes)
    report.heading.push_back("KV of a program that frees what has left the windows of layers: " +
                             config::short_text(chosen.kv_in_windows));
  present::add_warnings(report, model.notes);
  table.notes = {
      "* the model's own. The last column: a sequence longer than this keeps more KV than the layers have "
      "weights (6D for MHA, a 4D MLP and equal dtypes)."};
  if (!rows.back().is_latent)
    table.notes.push_back("No row of MLA: " + choices.kv_dtype +
                          " quantizes K and V of heads, and latents are neither.");
  return report;
}

}  // namespace

void add_tables(CLI::App& app) {
  CLI::App* tables = app.add_subcommand("tables", "The teaching tables of the generative-inference lecture");
  tables->require_subcommand(1);
  const auto add = [tables](const char* name, const char* help, present::Report (*make)(const TableChoices&)) {
    CLI::App* command = tables->add_subcommand(name, help);
    auto choices = std::make_shared<TableChoices>();
    reads(command->add_option("--model", choices->model, "Folder with config.json, or a name under scenarios/models"),
          study::try_find_model)
        ->required();
    command->add_option("--tokens", choices->tokens, "L: prompt length, or tokens cached so far")
        ->check(between(1, kLongestContext));
    command->add_option("--batch", choices->batch, "Sequences")->check(between(1, kLargestBatch));
    command->add_option("--kv-heads", choices->kv_heads, "KV heads instead of the model's own")->check(at_least(1));
    command->add_flag("--lecture", choices->lecture, "MHA and a plain MLP of width 4D, as the lecture has it");
    add_output_options(*command, choices->output);
    command->callback([choices, make] { present::show(make(*choices), choices->output); });
    return std::pair{command, choices};
  };
  const auto [intensity, intensity_choices] =
      add("intensity", "FLOP, bytes and FLOP/byte of every op of a layer", intensity_report);
  intensity->add_option("--phase", intensity_choices->phase, "prefill or decode")
      ->check(CLI::IsMember({"prefill", "decode"}));
  intensity->add_option("--dtype", intensity_choices->dtype, "Of weights, activations and KV");
  intensity->add_option("--layer", intensity_choices->layer, "Of which layer, where they differ: 0 is the first")
      ->check(at_least(0));
  const auto [footprint, footprint_choices] =
      add("footprint", "Weights and KV cache for MHA, GQA, MQA and MLA", footprint_report);
  footprint->add_option("--dtype", footprint_choices->dtype, "Of the weights: f16, bf16, int8, gptq-int4");
  footprint->add_option("--kv-dtype", footprint_choices->kv_dtype, "Of the KV cache");
  add_latent_table(*tables);
}

}  // namespace dculab::cli

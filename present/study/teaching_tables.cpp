#include "present/study/teaching_tables.hpp"

#include <cmath>
#include <utility>

#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/teaching_fields.hpp"

namespace dculab::present {
namespace {

void add_intensity_row(Table& table, const sim::IntensityRow& row, bool is_total) {
  const std::string formula = row.formula == sim::LectureFormula::none ? "" : std::string(sim::text(row.formula));
  const bool moves = row.intensity.has_value();
  table.rows.push_back({is_total ? "" : std::to_string(row.number), std::string(row.op), std::string(row.computation),
                        moves ? number(row.flops.value(), 4) : "-", moves ? config::short_text(row.bytes) : "-",
                        moves ? number(row.intensity->value(), 4) : "-", formula});
}

[[nodiscard]] Table intensity_rows(const sim::IntensityTable& all) {
  Table table;
  table.columns = {"no", "op", "computation", "FLOP", "bytes", "FLOP/byte", "the lecture's formula"};
  for (const sim::IntensityRow& row : all.rows) add_intensity_row(table, row, false);
  add_intensity_row(table, all.total, true);
  return table;
}

[[nodiscard]] std::string ridge_text(const study::RidgePoint& ridge) {
  return "Ridge of " + ridge.machine + ": " + number(ridge.intensity().value()) + " FLOP/byte (" +
         config::short_text(ridge.peak) + " in " + std::string(name(ridge.dtype)) + " / " +
         config::short_text(ridge.bandwidth) + "); an op with less waits for memory.";
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

// "llama: one layer, decode, L = 100 tokens cached, batch 1, f16; D = 4096, ..."
[[nodiscard]] std::string intensity_heading(const study::IntensityQuestion& question, const ModelShape& model) {
  const LayerKind& layer = model.layer(question.layer);
  const std::string label = kind_label(model, model.layers[static_cast<std::size_t>(question.layer)]);
  const bool decodes = question.phase == Phase::decode;
  const std::string step = question.both_phases ? "prefill and decode" : decodes ? "decode" : "prefill";
  return model.name + ": one layer" + (label.empty() ? "" : " (" + label + ")") + ", " + step +
         ", L = " + std::to_string(question.tokens) +
         (decodes && !question.both_phases ? " tokens cached" : " tokens") + ", batch " +
         std::to_string(question.batch) + ", " + std::string(name(question.dtype)) +
         "; D = " + std::to_string(model.hidden_size) + ", " + attention_text(layer);
}

[[nodiscard]] std::string longest_text(std::int64_t tokens) {
  return tokens > 0 ? std::to_string(tokens) + " tokens" : "no room";
}

[[nodiscard]] std::string room_text(const study::KvRoom& room, int batch) {
  if (room.kv_bytes == Bytes())
    return room.machine + ": its " + config::short_text(room.memory) +
           " leave no room for a KV cache beside the weights";
  return room.machine + ": of " + config::short_text(room.memory) + ", " + config::short_text(room.kv_bytes) +
         " are left for the KV cache beside the model's weights; " + std::to_string(batch) +
         (batch == 1 ? " sequence fits" : " sequences fit") + " up to the context of the row.";
}

void add_footprint_row(Report& report, const sim::Footprint& row, const study::FootprintQuestion& question,
                       const study::FootprintAnswer& answer) {
  const ModelShape& model = answer.model;
  const sim::Footprint& own = answer.own;
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
       is_own ? kind + " *" : kind, config::short_text(row.weight_bytes), config::short_text(row.kv_bytes),
       config::short_text(row.kv_bytes_per_token), config::short_text(row.layer_weight_bytes),
       config::short_text(row.layer_kv_bytes), exact_number(std::floor(row.crossover_tokens)) + " tokens"});
  for (const study::KvRoom& room : answer.rooms)
    report.tables.front().rows.back().push_back(longest_text(study::longest_context(question, answer, row, room)));
}

void add_latent_row(Report& report, const sim::LatentForms& row) {
  report.tables.front().rows.push_back({std::to_string(row.new_tokens), config::short_text(row.expanded),
                                        config::short_text(row.absorbed), cheaper_form(row)});
}

}  // namespace

Report intensity_report(const study::IntensityQuestion& question, const study::IntensityAnswer& answer) {
  const ModelShape& model = answer.model;
  Report report = report_of("dculab/tables-intensity/1", ReportedIntensity{question, answer});
  report.heading = {intensity_heading(question, model)};
  report.tables.push_back(intensity_rows(answer.table));
  if (answer.decode) {
    report.tables.front().title = "Prefill";
    report.tables.push_back(intensity_rows(*answer.decode));
    report.tables.back().title = "Decode of one token more";
  }
  add_warnings(report, model.notes);
  std::vector<std::string>& notes = report.tables.back().notes;
  notes = {
      "One multiply-add is 2 FLOP. Every op reads its inputs from memory and writes its output there, scores included;",
      "what a fused kernel moves is `dculab predict`."};
  for (const study::RidgePoint& ridge : answer.ridges) notes.push_back(ridge_text(ridge));
  return report;
}

Report footprint_report(const study::FootprintQuestion& question, const study::FootprintAnswer& answer) {
  const ModelShape& model = answer.model;
  const std::string kv_cache(name(question.request.kv_cache_dtype));
  Report report = report_of("dculab/tables-footprint/1", ReportedFootprint{question, answer});
  report.tables.emplace_back();
  report.heading = {model.name + ": " + counted(question.request.batch, "sequence") + " of " +
                    counted(question.request.tokens, "token") + ", weights " +
                    config::weight_format_text(answer.weights) + ", KV " + kv_cache};
  report.tables.front().columns = {"KV heads",      "",         "weights",          "KV cache", "KV / token",
                                   "layer weights", "layer KV", "KV > weights from"};
  for (const study::KvRoom& room : answer.rooms) report.tables.front().columns.push_back("fits on " + room.machine);
  for (const sim::Footprint& row : answer.rows) add_footprint_row(report, row, question, answer);
  if (answer.own.kv_in_windows < answer.own.kv_bytes)
    report.heading.push_back("KV of a program that frees what has left the windows of layers: " +
                             config::short_text(answer.own.kv_in_windows));
  add_warnings(report, model.notes);
  std::vector<std::string>& notes = report.tables.front().notes;
  notes = {
      "* the model's own. KV > weights from: a sequence longer than this keeps more KV than the layers have "
      "weights (6D for MHA, a 4D MLP and equal dtypes)."};
  if (!answer.rows.back().is_latent)
    notes.push_back("No row of MLA: " + kv_cache + " quantizes K and V of heads, and latents are neither.");
  for (const study::KvRoom& room : answer.rooms) notes.push_back(room_text(room, question.request.batch));
  return report;
}

Report latent_forms_report(const study::LatentFormsQuestion& question, const study::LatentFormsAnswer& answer) {
  const std::string &model = answer.model.name, &machine = answer.machine.name;
  Report report = report_of("dculab/tables-latents/1", ReportedLatentForms{question, answer});
  report.tables.emplace_back();
  report.heading = {model + " on " + machine + ": latent attention in one layer, " +
                    counted(question.batch, "sequence") + " of " + counted(question.context, "token")};
  add_warnings(report, answer.model.notes);
  add_warnings(report, answer.unserved);
  Table& table = report.tables.front();
  table.columns = {"new tokens each", "expanded", "absorbed", "cheaper"};
  for (const sim::LatentForms& row : answer.rows) add_latent_row(report, row);
  table.notes = {
      "Expanded: kv_b_proj for the whole context, attention of every head. Absorbed: its products for the new "
      "tokens,",
      "attention over latents. 1 new token is a decode, more are a chunk of a prefill."};
  return report;
}

}  // namespace dculab::present

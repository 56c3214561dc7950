// The fields of the teaching tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/dtype.hpp"
#include "present/output/field_json.hpp"
#include "study/evaluate/latent_forms.hpp"
#include "study/evaluate/layer_tables.hpp"

namespace dculab::present {

struct ToldIntensity {
  const study::IntensityQuestion& question;
  const study::IntensityAnswer& answer;
};

struct FootprintRow {
  const sim::Footprint& row;
  bool has_entries = false;  // of compressed attention, in the place of latents
};

struct ToldFootprint {
  const study::FootprintAnswer& answer;
};

struct ToldLatentForms {
  const study::LatentFormsQuestion& question;
  const study::LatentFormsAnswer& answer;
};

[[nodiscard]] inline const char* cheaper_form(const sim::LatentForms& row) {
  return row.cheaper() == LatentForm::absorb ? "absorbed" : "expanded";
}

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::IntensityRow> {
  using Row = sim::IntensityRow;
  static constexpr std::string_view id = "intensity_row";
  static constexpr std::string_view doc =
      "An op of a layer, which reads its inputs from memory and writes its output there.";
  static constexpr auto fields = std::tuple(
      field("number", "in the lecture's table", &Row::number), field("op", "its name", &Row::op),
      field("computation", "as the lecture writes it", &Row::computation),
      field("flops", "arithmetic; 2 for a multiply-add", &Row::flops), field("bytes", "read and written", &Row::bytes),
      field("intensity", "arithmetic intensity; null: it moves nothing",
            [](const Row& row) { return or_null(row.intensity); }),
      field("lecture_formula", "for the intensity, where the lecture has one", [](const Row& row) {
        return when(row.formula != sim::LectureFormula::none, [&row] { return std::string(sim::text(row.formula)); });
      }));
};

template <>
struct FieldList<present::ToldIntensity> {
  using Told = present::ToldIntensity;
  static constexpr std::string_view id = "intensity";
  static constexpr std::string_view doc = "Arithmetic intensity of the ops of one layer.";
  static constexpr std::string_view csv_rows = "rows";
  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Told& told) { return told.answer.model.name; }),
      field("phase", "of the step", one_of("decode", "prefill"),
            [](const Told& told) { return told.question.phase == Phase::decode ? "decode" : "prefill"; }),
      field("tokens", "of a prompt, or cached so far", unit::tokens,
            [](const Told& told) { return told.question.tokens; }),
      field("batch", "sequences", unit::count, [](const Told& told) { return told.question.batch; }),
      field("dtype", "of weights, activations and KV", names_up_to<Dtype::fp4>(),
            [](const Told& told) { return name(told.question.dtype); }),
      field("rows", "op by op",
            [](const Told& told) -> const std::vector<sim::IntensityRow>& { return told.answer.table.rows; }),
      field("total", "of the layer", [](const Told& told) { return told.answer.table.total; }));
};

template <>
struct FieldList<present::FootprintRow> {
  using Told = present::FootprintRow;
  static constexpr std::string_view id = "footprint_row";
  static constexpr std::string_view doc = "Memory of a model with other KV heads, or with latents.";
  static constexpr auto fields = std::tuple(
      field("attention", "what is kept", one_of("gqa", "mla", "entries"),
            [](const Told& told) { return told.has_entries     ? "entries"
                                          : told.row.is_latent ? "mla"
                                                               : "gqa"; }),
      field("num_key_value_heads", "of a layer; 1 of latents", unit::count,
            [](const Told& told) { return told.row.kv_heads; }),
      field("weight_bytes", "of everything", [](const Told& told) { return told.row.weight_bytes; }),
      field("kv_bytes", "of all sequences", [](const Told& told) { return told.row.kv_bytes; }),
      field("kv_bytes_per_token", "of all layers", [](const Told& told) { return told.row.kv_bytes_per_token; }),
      field("crossover_tokens", "of a sequence, beyond which KV takes more than the layers' weights", unit::tokens,
            [](const Told& told) { return told.row.crossover_tokens; }));
};

template <>
struct FieldList<present::ToldFootprint> {
  using Told = present::ToldFootprint;
  static constexpr std::string_view id = "footprint";
  static constexpr std::string_view doc = "Memory of a model's weights and KV cache.";
  static constexpr std::string_view csv_rows = "rows";

  [[nodiscard]] static std::vector<present::FootprintRow> rows(const Told& told) {
    std::vector<present::FootprintRow> rows;
    for (const sim::Footprint& row : told.answer.rows)
      rows.push_back({row, row.is_latent && told.answer.model.has_compressed_entries()});
    return rows;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Told& told) { return told.answer.model.name; }),
      field("num_key_value_heads", "of a layer", unit::count,
            [](const Told& told) { return told.answer.model.heads().num_key_value_heads; }),
      field("weight_bytes", "of everything", [](const Told& told) { return told.answer.own.weight_bytes; }),
      field("kv_bytes", "of all sequences", [](const Told& told) { return told.answer.own.kv_bytes; }),
      field("kv_bytes_in_windows", "of these, where what has left the windows of layers is freed",
            [](const Told& told) { return told.answer.own.kv_in_windows; }),
      field("kv_bytes_per_token", "of all layers", [](const Told& told) { return told.answer.own.kv_bytes_per_token; }),
      field("layer_weight_bytes", "of a layer, mean of all",
            [](const Told& told) { return told.answer.own.layer_weight_bytes; }),
      field("layer_kv_bytes", "of a layer, mean of all, all sequences",
            [](const Told& told) { return told.answer.own.layer_kv_bytes; }),
      field("crossover_tokens", "of a sequence, beyond which KV takes more than the layers' weights", unit::tokens,
            [](const Told& told) { return told.answer.own.crossover_tokens; }),
      field("rows", "other numbers of KV heads, and latents", &rows));
};

template <>
struct FieldList<sim::LatentForms> {
  using Row = sim::LatentForms;
  static constexpr std::string_view id = "latent_forms_row";
  static constexpr std::string_view doc = "Both forms of latent attention in one layer.";
  static constexpr auto fields = std::tuple(
      field("new_tokens", "of each sequence", unit::tokens, &Row::new_tokens),
      field("expanded_seconds", "K and V of every head are computed of the latents", &Row::expanded),
      field("absorbed_seconds", "queries and outputs are projected, and attention is over latents", &Row::absorbed),
      field("cheaper", "of the two", one_of("expanded", "absorbed"), &present::cheaper_form));
};

template <>
struct FieldList<present::ToldLatentForms> {
  using Told = present::ToldLatentForms;
  static constexpr std::string_view id = "latent_forms";
  static constexpr std::string_view doc = "Which form of latent attention is cheaper, by new tokens.";
  static constexpr std::string_view csv_rows = "rows";
  static constexpr auto fields =
      std::tuple(field("model", "its name", [](const Told& told) { return told.answer.model.name; }),
                 field("machine", "its name", [](const Told& told) { return told.answer.machine.name; }),
                 field("batch", "sequences", unit::count, [](const Told& told) { return told.question.batch; }),
                 field("context_tokens", "of each, the new ones among them", unit::tokens,
                       [](const Told& told) { return told.question.context; }),
                 field("rows", "by new tokens",
                       [](const Told& told) -> const std::vector<sim::LatentForms>& { return told.answer.rows; }));
};

}  // namespace dculab

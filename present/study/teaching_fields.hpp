// The fields of the teaching tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "config/weight_format_text.hpp"
#include "core/dtype.hpp"
#include "present/output/field_json.hpp"
#include "present/values/machine_figures.hpp"
#include "study/evaluate/latent_forms.hpp"
#include "study/evaluate/layer_tables.hpp"

namespace dculab::present {

struct ReportedIntensity {
  const study::IntensityQuestion& question;
  const study::IntensityAnswer& answer;
};

[[nodiscard]] inline const char* phase_word(const study::IntensityQuestion& question) {
  return question.both_phases ? "both" : question.phase == Phase::decode ? "decode" : "prefill";
}

struct FootprintRow {
  const sim::Footprint& row;
  bool has_entries = false;  // of compressed attention, in the place of latents
  std::optional<ByMachine<std::int64_t>> longest{};
};

struct ReportedFootprint {
  const study::FootprintQuestion& question;
  const study::FootprintAnswer& answer;
};

struct ReportedLatentForms {
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
      field("phase", "of the step", one_of("decode", "prefill"),
            [](const Row& row) { return row.phase == Phase::decode ? "decode" : "prefill"; }),
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
struct FieldList<study::RidgePoint> {
  using Ridge = study::RidgePoint;
  static constexpr std::string_view id = "ridge";
  static constexpr std::string_view doc = "Where a machine's limit goes over from its memory to its arithmetic.";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Ridge::machine),
                 field("dtype", "that it multiplies", names_up_to<Dtype::fp4>(),
                       [](const Ridge& each) { return name(each.dtype); }),
                 field("flop_per_second", "peak arithmetic in it", &Ridge::peak),
                 field("bytes_per_second", "peak bandwidth of DRAM", &Ridge::bandwidth),
                 field("intensity", "one divided by the other", [](const Ridge& each) { return each.intensity(); }));
};

template <>
struct FieldList<present::ReportedIntensity> {
  using Self = present::ReportedIntensity;
  static constexpr std::string_view id = "intensity";
  static constexpr std::string_view doc = "Arithmetic intensity of the ops of one layer.";
  static constexpr std::string_view csv_rows = "rows";

  [[nodiscard]] static std::vector<sim::IntensityRow> rows(const Self& reported) {
    std::vector<sim::IntensityRow> all = reported.answer.table.rows;
    if (const auto& decode = reported.answer.decode) all.insert(all.end(), decode->rows.begin(), decode->rows.end());
    return all;
  }

  static constexpr auto fields =
      std::tuple(field("model", "its name", [](const Self& reported) { return reported.answer.model.name; }),
                 field("phase", "of the step, or both", one_of("decode", "prefill", "both"),
                       [](const Self& reported) { return present::phase_word(reported.question); }),
                 field("tokens", "of a prompt, or cached so far", unit::tokens,
                       [](const Self& reported) { return reported.question.tokens; }),
                 field("batch", "sequences", unit::count, [](const Self& reported) { return reported.question.batch; }),
                 field("dtype", "of weights, activations and KV", names_up_to<Dtype::fp4>(),
                       [](const Self& reported) { return name(reported.question.dtype); }),
                 field("rows", "op by op; of both phases those of prefill first", &rows),
                 field("total", "of the layer; of both phases that of prefill",
                       [](const Self& reported) { return reported.answer.table.total; }),
                 field("decode_total", "of the layer, where both phases are asked for",
                       [](const Self& reported) {
                         return when(reported.answer.decode.has_value(), [&] { return reported.answer.decode->total; });
                       }),
                 field("ridges", "of the machines asked for",
                       [](const Self& reported) { return unless_empty(reported.answer.ridges); }));
};

template <>
struct FieldList<present::FootprintRow> {
  using Self = present::FootprintRow;
  static constexpr std::string_view id = "footprint_row";
  static constexpr std::string_view doc = "Memory of a model with other KV heads, or with latents.";
  static constexpr auto fields =
      std::tuple(field("attention", "what is kept", one_of("gqa", "mla", "entries"),
                       [](const Self& reported) {
                         return reported.has_entries ? "entries" : reported.row.is_latent ? "mla" : "gqa";
                       }),
                 field("num_key_value_heads", "of a layer; 1 of latents", unit::count,
                       [](const Self& reported) { return reported.row.kv_heads; }),
                 field("weight_bytes", "of everything", [](const Self& reported) { return reported.row.weight_bytes; }),
                 field("kv_bytes", "of all sequences", [](const Self& reported) { return reported.row.kv_bytes; }),
                 field("kv_bytes_per_token", "of all layers",
                       [](const Self& reported) { return reported.row.kv_bytes_per_token; }),
                 field("crossover_tokens", "of a sequence, beyond which KV takes more than the layers' weights",
                       unit::tokens, [](const Self& reported) { return reported.row.crossover_tokens; }),
                 field("longest_context", "of each sequence, that fits in a machine's memory, by machine", unit::tokens,
                       &Self::longest));
};

template <>
struct FieldList<study::KvRoom> {
  using Room = study::KvRoom;
  static constexpr std::string_view id = "kv_room";
  static constexpr std::string_view doc = "What a machine's memory leaves for a KV cache.";
  static constexpr auto fields = std::tuple(
      field("machine", "its name", &Room::machine), field("memory_bytes", "of a device", &Room::memory),
      field("kv_bytes", "beside the model's own weights, activations and buffers; 0: these alone are too many",
            &Room::kv_bytes));
};

template <>
struct FieldList<present::ReportedFootprint> {
  using Self = present::ReportedFootprint;
  static constexpr std::string_view id = "footprint";
  static constexpr std::string_view doc = "Memory of a model's weights and KV cache.";
  static constexpr std::string_view csv_rows = "rows";

  [[nodiscard]] static std::vector<present::FootprintRow> rows(const Self& reported) {
    std::vector<present::FootprintRow> rows;
    for (const sim::Footprint& row : reported.answer.rows) {
      rows.push_back({row, row.is_latent && reported.answer.model.has_compressed_entries()});
      for (const study::KvRoom& room : reported.answer.rooms) {
        if (!rows.back().longest) rows.back().longest.emplace();
        present::set_of_machine(*rows.back().longest, room.machine,
                                study::longest_context(reported.question, reported.answer, row, room));
      }
    }
    return rows;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Self& reported) { return reported.answer.model.name; }),
      field("num_key_value_heads", "of a layer", unit::count,
            [](const Self& reported) { return reported.answer.model.heads().num_key_value_heads; }),
      field("tokens", "of a sequence", unit::tokens,
            [](const Self& reported) { return reported.question.request.tokens; }),
      field("batch", "sequences", unit::count, [](const Self& reported) { return reported.question.request.batch; }),
      field("max_position_embeddings", "the model's longest context", unit::tokens,
            [](const Self& reported) { return reported.answer.model.max_position_embeddings; }),
      field("weights", "their format",
            [](const Self& reported) { return config::weight_format_text(reported.answer.weights); }),
      field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
            [](const Self& reported) { return name(reported.question.request.kv_cache_dtype); }),
      field("weight_bytes", "of everything", [](const Self& reported) { return reported.answer.own.weight_bytes; }),
      field("kv_bytes", "of all sequences", [](const Self& reported) { return reported.answer.own.kv_bytes; }),
      field("kv_bytes_in_windows", "of these, where what has left the windows of layers is freed",
            [](const Self& reported) { return reported.answer.own.kv_in_windows; }),
      field("kv_bytes_per_token", "of all layers",
            [](const Self& reported) { return reported.answer.own.kv_bytes_per_token; }),
      field("layer_weight_bytes", "of a layer, mean of all",
            [](const Self& reported) { return reported.answer.own.layer_weight_bytes; }),
      field("layer_kv_bytes", "of a layer, mean of all, all sequences",
            [](const Self& reported) { return reported.answer.own.layer_kv_bytes; }),
      field("crossover_tokens", "of a sequence, beyond which KV takes more than the layers' weights", unit::tokens,
            [](const Self& reported) { return reported.answer.own.crossover_tokens; }),
      field("rows", "other numbers of KV heads, and latents", &rows),
      field("rooms", "of the machines asked for", [](const Self& reported) {
        return when(!reported.answer.rooms.empty(), [&] { return reported.answer.rooms; });
      }));
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
struct FieldList<present::ReportedLatentForms> {
  using Self = present::ReportedLatentForms;
  static constexpr std::string_view id = "latent_forms";
  static constexpr std::string_view doc = "Which form of latent attention is cheaper, by new tokens.";
  static constexpr std::string_view csv_rows = "rows";
  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Self& reported) { return reported.answer.model.name; }),
      field("machine", "its name", [](const Self& reported) { return reported.answer.machine.name; }),
      field("batch", "sequences", unit::count, [](const Self& reported) { return reported.question.batch; }),
      field("context_tokens", "of each, the new ones among them", unit::tokens,
            [](const Self& reported) { return reported.question.context; }),
      field("rows", "by new tokens",
            [](const Self& reported) -> const std::vector<sim::LatentForms>& { return reported.answer.rows; }));
};

}  // namespace dculab

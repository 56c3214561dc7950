// The fields of what `dculab quantize` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/measure/quantize_report.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

// Of all matrices together.
struct QuantizedTotals {
  double relative_error = 0;  // root mean square
  double bits_per_weight = 0;
  int dead_columns = 0;
  Bytes file;
};
[[nodiscard]] QuantizedTotals quantized_totals(const std::string& folder, const engine::QuantizedModel& model);

// Bits of integers, scales and zero points for each weight; g_idx is left out, it is not kept at run time.
[[nodiscard]] double bits_per_weight(const kernels::QuantizedMatrix& matrix);

struct ReportedQuantized {
  const study::QuantizeQuestion& question;
  const study::QuantizedAnswer& answer;
};

// Of a folder with quantized weights.
struct QuantizedWeights {
  const std::string& folder;
  const engine::QuantizedModel& model;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<QuantizationConfig> {
  using Config = QuantizationConfig;
  static constexpr std::string_view id = "quantization";
  static constexpr std::string_view doc = "How weights are quantized.";
  static constexpr auto fields =
      std::tuple(field("bits", "of a weight", unit::count, &Config::bits),
                 field("group_size", "in-features that share a scale; -1: all", unit::count, &Config::group_size),
                 field("desc_act", "the most active in-features first", &Config::desc_act),
                 field("sym", "about 0, without zero points", &Config::sym),
                 field("checkpoint_format", "of the files", [](const Config& config) { return name(config.format); }));
};

template <>
struct FieldList<engine::QuantizedModule> {
  using Module = engine::QuantizedModule;
  static constexpr std::string_view id = "quantized_matrix";
  static constexpr std::string_view doc = "A matrix that was quantized.";
  static constexpr auto fields = std::tuple(
      field("name", "of its module", &Module::name),
      field("rows", "out-features", unit::count, [](const Module& module) { return module.matrix.rows; }),
      field("columns", "in-features", unit::count, [](const Module& module) { return module.matrix.columns; }),
      field("relative_error", "of its outputs, or its weights: error_of", unit::share, &Module::relative_error),
      field("bits_per_weight", "scales and zero points included", unit::count,
            [](const Module& module) { return present::bits_per_weight(module.matrix); }));
};

template <>
struct FieldList<present::QuantizedTotals> {
  using Totals = present::QuantizedTotals;
  static constexpr std::string_view id = "quantized_totals";
  static constexpr std::string_view doc = "All matrices together.";
  static constexpr auto fields =
      std::tuple(field("relative_error", "root mean square of the matrices'", unit::share, &Totals::relative_error),
                 field("bits_per_weight", "scales and zero points included", unit::count, &Totals::bits_per_weight),
                 field("dead_columns", "in-features that were 0 in all of the calibration text", unit::count,
                       &Totals::dead_columns),
                 field("file_bytes", "of model.safetensors", &Totals::file));
};

template <>
struct FieldList<study::KvScaleRow> {
  using Row = study::KvScaleRow;
  static constexpr std::string_view id = "kv_scales";
  static constexpr std::string_view doc = "Scales of an fp8_e4m3 KV cache, of a layer.";
  static constexpr auto fields =
      std::tuple(field("largest_key", "in the calibration text", [](const Row& row) { return row.range.k; }),
                 field("largest_value", "in the calibration text", [](const Row& row) { return row.range.v; }),
                 field("k_scale", "of keys", [](const Row& row) { return row.scales.k; }),
                 field("v_scale", "of values", [](const Row& row) { return row.scales.v; }));
};

template <>
struct FieldList<engine::KvLayerCalibration> {
  using Layer = engine::KvLayerCalibration;
  static constexpr std::string_view id = "kv_calibration";
  static constexpr std::string_view doc = "Of kvquant formats, of a layer: over the channels, in magnitude.";
  static constexpr auto fields = std::tuple(
      field("largest_k_centre", "of keys", [](const Layer& layer) { return layer.largest_centre(); }),
      field("largest_k_half_range", "of keys", [](const Layer& layer) { return layer.largest_half_range(); }));
};

template <>
struct FieldList<present::QuantizedWeights> {
  using Self = present::QuantizedWeights;
  static constexpr std::string_view id = "quantized_weights";
  static constexpr std::string_view doc = "The quantized matrices.";
  static constexpr auto fields = std::tuple(
      field("matrices", "in the order of the layers",
            [](const Self& reported) -> const std::vector<engine::QuantizedModule>& { return reported.model.modules; }),
      field("total", "all together",
            [](const Self& reported) { return present::quantized_totals(reported.folder, reported.model); }));
};

template <>
struct FieldList<present::ReportedQuantized> {
  using Self = present::ReportedQuantized;
  static constexpr std::string_view id = "quantized";
  static constexpr std::string_view doc = "A model that was quantized.";
  static constexpr std::string_view csv_rows = "matrices|kv_scales|kv_calibration";
  static constexpr auto fields = std::tuple(
      field("method", "none: weights stay as they are",
            [](const Self& reported) { return reported.answer.model ? name(reported.answer.options.method) : "none"; }),
      inlined([](const Self& reported) {
        return when(reported.answer.model.has_value(), [&] { return reported.answer.options.config; });
      }),
      field("calibration_tokens", "of the text; 0: none", unit::tokens,
            [](const Self& reported) { return reported.answer.calibration_tokens; }),
      field("error_of", "what errors are of", one_of("outputs", "weights"),
            [](const Self& reported) {
              return when(reported.answer.model.has_value(),
                          [&] { return reported.answer.calibration_tokens > 0 ? "outputs" : "weights"; });
            }),
      field("output", "the folder that was written", [](const Self& reported) { return reported.question.output; }),
      inlined([](const Self& reported) {
        return when(reported.answer.model.has_value(), [&] {
          return present::QuantizedWeights{reported.question.output, *reported.answer.model};
        });
      }),
      field("kv_scales", "layer by layer, where they were asked for",
            [](const Self& reported) {
              return when(!reported.answer.kv_scales.empty(), [&] { return reported.answer.kv_scales; });
            }),
      field("kv_calibration", "layer by layer, where it was asked for", [](const Self& reported) {
        return when(!reported.answer.kv_calibration.empty(), [&] { return reported.answer.kv_calibration; });
      }));
};

}  // namespace dculab

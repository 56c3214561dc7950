#include "present/engine/quantize_report.hpp"

#include <cmath>
#include <filesystem>

#include "config/unit_text.hpp"

namespace dculab::present {
namespace {

// Bits of integers, scales and zero points for each weight; g_idx is left out, it is not kept at run time.
[[nodiscard]] double bits_per_weight(const kernels::QuantizedMatrix& matrix) {
  return matrix.bits + (16.0 + matrix.bits) / matrix.group_size;
}

struct Totals {
  double weights = 0, bits = 0, squared_errors = 0;
  int dead_columns = 0;
};

[[nodiscard]] Totals add_up(const engine::QuantizedModel& model) {
  Totals totals;
  for (const engine::QuantizedModule& module : model.modules) {
    const double weights = static_cast<double>(module.matrix.q.size());
    totals.weights += weights;
    totals.bits += weights * bits_per_weight(module.matrix);
    totals.squared_errors += module.relative_error * module.relative_error;
    totals.dead_columns += module.dead_columns;
  }
  return totals;
}

void add_totals(Report& report, const std::string& output, const study::QuantizedAnswer& answer) {
  const Totals totals = add_up(*answer.model);
  const double error = std::sqrt(totals.squared_errors / static_cast<double>(answer.model->modules.size()));
  const auto bytes =
      static_cast<double>(std::filesystem::file_size(std::filesystem::path(output) / "model.safetensors"));
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("all: error " + percent(error) + " (root mean square), " + number(totals.bits / totals.weights, 4) +
                  " bits a weight; " + output + " holds " + config::short_text(Bytes(bytes)) + " of weights");
  if (answer.calibration_tokens == 0)
    notes.emplace_back("no calibration text: errors are those of the weights, not of outputs");
  if (totals.dead_columns > 0)
    notes.push_back(std::to_string(totals.dead_columns) +
                    " in-features were 0 in all of the calibration text; they are rounded to nearest");
  report.json["total"] = {{"relative_error", error},
                          {"bits_per_weight", totals.bits / totals.weights},
                          {"dead_columns", totals.dead_columns},
                          {"file_bytes", bytes}};
}

void add_matrices(Report& report, const std::string& output, const study::QuantizedAnswer& answer) {
  Table table;
  const std::string error = answer.calibration_tokens > 0 ? "output error" : "weight error";
  table.columns = {"matrix", "rows", "columns", error, "bits a weight"};
  for (const engine::QuantizedModule& module : answer.model->modules) {
    const kernels::QuantizedMatrix& matrix = module.matrix;
    table.rows.push_back({module.name, std::to_string(matrix.rows), std::to_string(matrix.columns),
                          Cell(percent(module.relative_error), module.relative_error),
                          Cell(number(bits_per_weight(matrix), 4), bits_per_weight(matrix))});
    report.json["matrices"].push_back({{"name", module.name},
                                       {"rows", matrix.rows},
                                       {"columns", matrix.columns},
                                       {"relative_error", module.relative_error},
                                       {"bits_per_weight", bits_per_weight(matrix)}});
  }
  report.tables.push_back(std::move(table));
  add_totals(report, output, answer);
}

void add_kv_scales(Report& report, const std::vector<study::KvScaleRow>& rows) {
  Table table;
  table.columns = {"layer", "largest key", "largest value", "k_scale", "v_scale"};
  report.json["kv_scales"] = Json::array();
  for (const auto& [range, scales] : rows) {
    table.rows.push_back({std::to_string(table.rows.size()), Cell(number(range.k, 4), range.k),
                          Cell(number(range.v, 4), range.v), Cell(number(scales.k, 4), scales.k),
                          Cell(number(scales.v, 4), scales.v)});
    report.json["kv_scales"].push_back(
        {{"largest_key", range.k}, {"largest_value", range.v}, {"k_scale", scales.k}, {"v_scale", scales.v}});
  }
  table.notes.emplace_back("scales of an fp8_e4m3 KV cache: 448 stands for twice the largest that the text has");
  report.tables.push_back(std::move(table));
}

void add_kv_calibration(Report& report, const std::vector<engine::KvLayerCalibration>& layers) {
  Table table;
  table.columns = {"layer", "K: largest centre", "largest half range"};
  report.json["kv_calibration"] = Json::array();
  for (const engine::KvLayerCalibration& layer : layers) {
    const double centre = layer.largest_centre(), half_range = layer.largest_half_range();
    table.rows.push_back(
        {std::to_string(table.rows.size()), Cell(number(centre, 4), centre), Cell(number(half_range, 4), half_range)});
    report.json["kv_calibration"].push_back({{"largest_k_centre", centre}, {"largest_k_half_range", half_range}});
  }
  table.notes.emplace_back("kv_cache.safetensors serves KV caches of kvquant4, kvquant3 and kvquant2");
  report.tables.push_back(std::move(table));
}

}  // namespace

Report quantize_report(const study::QuantizeQuestion& question, const study::QuantizedAnswer& answer) {
  Report report{"dculab/quantize/1", {}, {}, Json::object()};
  const engine::QuantizeOptions& options = answer.options;
  report.json = {{"method", answer.model ? name(options.method) : "none"}};
  if (answer.model) {
    report.json["bits"] = options.config.bits;
    report.json["group_size"] = options.config.group_size;
    report.json["desc_act"] = options.config.desc_act;
    report.json["sym"] = options.config.sym;
    report.json["checkpoint_format"] = name(options.config.format);
  }
  report.json["calibration_tokens"] = answer.calibration_tokens;
  if (answer.model) report.json["error_of"] = answer.calibration_tokens > 0 ? "outputs" : "weights";
  report.json["output"] = question.output;
  if (answer.model) {
    report.json["matrices"] = Json::array();
    add_matrices(report, question.output, answer);
  }
  if (!answer.kv_scales.empty()) add_kv_scales(report, answer.kv_scales);
  if (!answer.kv_calibration.empty()) add_kv_calibration(report, answer.kv_calibration);
  return report;
}

}  // namespace dculab::present

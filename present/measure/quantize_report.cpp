#include "present/measure/quantize_report.hpp"

#include <cmath>
#include <filesystem>

#include "config/unit_text.hpp"
#include "present/measure/quantize_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

void add_totals(Report& report, const std::string& output, const study::QuantizedAnswer& answer) {
  const QuantizedTotals totals = quantized_totals(output, *answer.model);
  std::vector<std::string>& notes = report.tables.back().notes;
  notes.push_back("all: error " + percent(totals.relative_error) + " (root mean square), " +
                  number(totals.bits_per_weight, 4) + " bits a weight; " + output + " holds " +
                  config::short_text(totals.file) + " of weights");
  if (answer.calibration_tokens == 0)
    notes.emplace_back("no calibration text: errors are those of the weights, not of outputs");
  if (totals.dead_columns > 0)
    notes.push_back(std::to_string(totals.dead_columns) +
                    " in-features were 0 in all of the calibration text; they are rounded to nearest");
}

void add_matrices(Report& report, const std::string& output, const study::QuantizedAnswer& answer) {
  Table table;
  const std::string error = answer.calibration_tokens > 0 ? "output error" : "weight error";
  table.columns = {"matrix", "rows", "columns", error, "bits a weight"};
  for (const engine::QuantizedModule& module : answer.model->modules) {
    const kernels::QuantizedMatrix& matrix = module.matrix;
    table.rows.push_back({module.name, std::to_string(matrix.rows), std::to_string(matrix.columns),
                          percent(module.relative_error), number(bits_per_weight(matrix), 4)});
  }
  report.tables.push_back(std::move(table));
  add_totals(report, output, answer);
}

void add_kv_scales(Report& report, const std::vector<study::KvScaleRow>& rows) {
  Table table;
  table.columns = {"layer", "largest key", "largest value", "k_scale", "v_scale"};
  for (const auto& [range, scales] : rows) {
    table.rows.push_back({std::to_string(table.rows.size()), number(range.k, 4), number(range.v, 4),
                          number(scales.k, 4), number(scales.v, 4)});
  }
  table.notes.emplace_back("scales of an fp8_e4m3 KV cache: 448 stands for twice the largest that the text has");
  report.tables.push_back(std::move(table));
}

void add_kv_calibration(Report& report, const std::vector<engine::KvLayerCalibration>& layers) {
  Table table;
  table.columns = {"layer", "K: largest centre", "largest half range"};
  for (const engine::KvLayerCalibration& layer : layers) {
    const double centre = layer.largest_centre(), half_range = layer.largest_half_range();
    table.rows.push_back({std::to_string(table.rows.size()), number(centre, 4), number(half_range, 4)});
  }
  table.notes.emplace_back("kv_cache.safetensors serves KV caches of kvquant4, kvquant3 and kvquant2");
  report.tables.push_back(std::move(table));
}

}  // namespace

double bits_per_weight(const kernels::QuantizedMatrix& matrix) {
  return matrix.bits + (16.0 + matrix.bits) / matrix.group_size;
}

QuantizedTotals quantized_totals(const std::string& folder, const engine::QuantizedModel& model) {
  double num_weights = 0, bits = 0, squared_errors = 0;
  int dead_columns = 0;
  for (const engine::QuantizedModule& module : model.modules) {
    const double weights = static_cast<double>(module.matrix.q.size());
    num_weights += weights;
    bits += weights * bits_per_weight(module.matrix);
    squared_errors += module.relative_error * module.relative_error;
    dead_columns += module.dead_columns;
  }
  const auto bytes =
      static_cast<double>(std::filesystem::file_size(std::filesystem::path(folder) / "model.safetensors"));
  return {std::sqrt(squared_errors / static_cast<double>(model.modules.size())), bits / num_weights, dead_columns,
          Bytes(bytes)};
}

Report quantize_report(const study::QuantizeQuestion& question, const study::QuantizedAnswer& answer) {
  Report report = report_of("dculab/quantize/1", ReportedQuantized{question, answer});
  if (answer.model) add_matrices(report, question.output, answer);
  if (!answer.kv_scales.empty()) add_kv_scales(report, answer.kv_scales);
  if (!answer.kv_calibration.empty()) add_kv_calibration(report, answer.kv_calibration);
  return report;
}

}  // namespace dculab::present

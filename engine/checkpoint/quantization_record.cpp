#include "engine/checkpoint/quantization_record.hpp"

#include <nlohmann/json.hpp>

#include "fields/json_text.hpp"

namespace dculab::engine {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json to_json(const QuantizationRecord& record) {
  const QuantizationConfig& config = record.config;
  return {{"quant_method", "gptq"},
          {"bits", config.bits},
          {"group_size", config.group_size},
          {"desc_act", config.desc_act},
          {"sym", config.sym},
          {"damp_percent", record.damp_percent},
          {"true_sequential", record.true_sequential},
          {"static_groups", false},
          {"lm_head", config.lm_head},
          {"checkpoint_format", name(config.format)},
          {"pack_dtype", "int32"},
          {"meta", {{"quantizer", {"dculab:" + record.method}}}}};
}

}  // namespace

std::string with_quantization_config(const std::string& config_json, const QuantizationRecord& record) {
  Node config = parse_json("config.json", 1, config_json);
  set_member(config, "quantization_config", parse_json("quantization_config", 1, to_json(record).dump()));
  return json_text(config, 2) + "\n";
}

std::string quantize_config_json(const QuantizationRecord& record) { return to_json(record).dump(2) + "\n"; }

}  // namespace dculab::engine

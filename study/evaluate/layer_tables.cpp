#include "study/evaluate/layer_tables.hpp"

#include <algorithm>

#include "core/engine_options.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "model/plan_step.hpp"
#include "sim/compute/peak.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/tables/lecture.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] ModelShape table_model(const TableModel& choice) {
  ModelShape model = read_model_shape(find_model(choice.name));
  if (choice.kv_heads > 0 && model.has_latents())
    throw InputError("--kv-heads: " + model.name + " keeps latents, which all heads share");
  if (choice.kv_heads > 0 && model.has_unequal_heads())
    throw InputError("--kv-heads: layers of " + model.name + " have heads that differ");
  if (choice.kv_heads > 0) model = with_kv_heads(model, choice.kv_heads);
  if (choice.lecture) model = sim::as_in_the_lecture(model);
  if (const auto found = problems(model); !found.empty())
    throw InputError(std::string(choice.lecture ? "--lecture: " : "--kv-heads: ") + found.front());
  return model;
}

[[nodiscard]] KvRoom kv_room(const sim::Machine& machine, const ModelShape& model, EngineOptions options, int tokens) {
  if (machine.kind == lower::DeviceKind::cpu) options.activation_dtype = Dtype::f32;
  const sim::Capacity capacity = sim::capacity(machine, model, options, tokens);
  return {machine.name, machine.dram().size, capacity.kv_budget};
}

[[nodiscard]] RidgePoint ridge_point(const sim::Machine& machine, Dtype dtype) {
  const sim::MultiplyFormat format = sim::multiply_format(machine, dtype);
  return {machine.name, format.dtype, sim::highest_rate(format.peak), machine.dram().bandwidth};
}

}  // namespace

IntensityAnswer layer_intensity(const IntensityQuestion& question) {
  IntensityAnswer answer{.model = table_model(question.model), .table = {}};
  const ModelShape& model = answer.model;
  if (question.layer >= model.num_layers())
    throw InputError("--layer: " + model.name + " has layers 0 to " + std::to_string(model.num_layers() - 1));
  const auto table_of = [&](Phase phase) {
    return sim::intensity_table(model, question.layer, phase, question.tokens, question.batch, question.dtype);
  };
  answer.table = table_of(question.both_phases ? Phase::prefill : question.phase);
  if (question.both_phases) answer.decode = table_of(Phase::decode);
  for (const std::string& name : question.machines)
    answer.ridges.push_back(ridge_point(resolve_machine(name), question.dtype));
  return answer;
}

FootprintAnswer model_footprint(const FootprintQuestion& question) {
  FootprintAnswer answer{.model = table_model(question.model)};
  if (question.weights) answer.model.expert_quantization.reset();  // the question's are those of all products
  answer.weights = question.weights.value_or(answer.model.layer_format());
  EngineOptions options;
  options.kv_cache_dtype = question.request.kv_cache_dtype;
  if (const auto found = problems(options, answer.model); !found.empty()) throw InputError("--kv-dtype", found.front());
  sim::FootprintRequest request = question.request;
  request.weights = answer.weights;
  answer.own = sim::footprint(answer.model, request);
  answer.rows = sim::footprint_table(answer.model, request);
  options.weights = answer.weights;
  for (const std::string& name : question.machines)
    answer.rooms.push_back(kv_room(resolve_machine(name), answer.model, options, request.tokens));
  return answer;
}

std::int64_t longest_context(const FootprintQuestion& question, const FootprintAnswer& answer,
                             const sim::Footprint& row, const KvRoom& room) {
  if (room.kv_bytes == Bytes()) return 0;
  const sim::FootprintRequest& request = question.request;
  const double sequences = request.batch;
  const Bytes per_token = row.kv_bytes_per_token * sequences;
  const Bytes whatever_the_context = row.kv_bytes - per_token * request.tokens;
  const Bytes left = room.kv_bytes + answer.own.weight_bytes - row.weight_bytes - whatever_the_context;
  return static_cast<std::int64_t>(std::max(0.0, left / per_token));
}

}  // namespace dculab::study

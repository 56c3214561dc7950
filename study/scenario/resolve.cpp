#include "study/scenario/resolve.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "config/number_text.hpp"
#include "config/scenario_document.hpp"
#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "core/letter_case.hpp"
#include "files/input.hpp"
#include "lower/dculab_cpu/geometry.hpp"
#include "model/folder/model_config.hpp"
#include "model/model_config.hpp"
#include "model/plan_step.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/speculation/draft_work.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/named_files.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

// `names` and what the sweep has in their place: `key` is "machine" or "model".
[[nodiscard]] std::vector<std::string> with_swept(const config::Scenario& scenario, const std::string& key,
                                                  std::vector<std::string> names) {
  for (const config::SweepAxis& axis : scenario.sweep)
    if (axis.key == key || axis.key == key + ".name") names.insert(names.end(), axis.values.begin(), axis.values.end());
  return names;
}

// Those of the sweep and of what is compared too.
[[nodiscard]] std::vector<std::string> models_of(const config::Scenario& scenario) {
  std::vector<std::string> names = with_swept(scenario, "model", {scenario.model.name});
  if (!scenario.speculation.model.empty()) names.push_back(scenario.speculation.model);
  if (!scenario.few_heads.model.empty()) names.push_back(scenario.few_heads.model);
  if (scenario.compare)
    for (const config::Variant& variant : scenario.compare->variants)
      for (const auto& [key, value] : variant.changes)
        if (key == "model" || key == "model.name") names.push_back(value);
  return names;
}

void refuse_written_machine(const std::string& name) {
  const auto file = try_find_machine(name);
  if (file && !files::is_handed_over(file->native())) (void)files::open_regular(*file);
}

}  // namespace

std::vector<std::string> machines_of(const config::Scenario& scenario) {
  return with_swept(scenario, "machine", scenario.machines);
}

void refuse_written_inputs(const config::Scenario& scenario) {
  for (const std::string& name : machines_of(scenario)) refuse_written_machine(name);
  if (!scenario.decode_machine.empty()) refuse_written_machine(scenario.decode_machine);
  for (const std::string& name : with_swept(scenario, "model", {scenario.model.name}))
    if (const auto folder = try_find_model(name)) require_unwritten(*folder);
  const std::filesystem::path requests = scenario.workload.file.empty() ? "" : find_requests_file(scenario);
  if (std::error_code ignored; std::filesystem::is_regular_file(requests, ignored)) (void)files::open_regular(requests);
}

namespace {

[[nodiscard]] std::string gguf_note(const config::GgufFormat& gguf) {
  const double stored = 8 * weight_storage(gguf.format, 1 << 20).value() / (1 << 20);
  return std::string(gguf.note) + "; their bytes are those of " + config::number(stored, 2) + " bits";
}

}  // namespace

ModelShape resolve_model(const config::Scenario& scenario) {
  return resolve_model(scenario, read_model_shape(find_model(scenario.model.name)));
}

ModelShape resolve_model(const config::Scenario& scenario, const ModelShape& read) {
  ModelShape model = config::resolve_model(read, scenario.model);
  if (scenario.weights) model.expert_quantization.reset();  // the question's are those of all products
  if (scenario.gguf != nullptr) {
    model.dtype = config::kGgufHead;
    model.notes.push_back(gguf_note(*scenario.gguf));
  }
  const std::vector<std::string> found = problems(model);
  if (found.empty()) return model;
  const std::string problem = "model " + scenario.model.name + ": " + found.front();
  for (const auto& [field, value] : scenario.model.overrides)
    if (problem.find(field) != std::string::npos && config::find_key(scenario.document, "model." + field) != nullptr)
      refuse_key(scenario, "model." + field, {problem});
  throw InputError(scenario.file, problem);
}

std::vector<std::string> model_notes(const config::Scenario& scenario) {
  std::vector<std::string> notes;
  const std::vector<std::string> names = models_of(scenario);
  const bool drafts_with_own_layers = scenario.options.speculative_config.method == SpeculativeMethod::mtp;
  for (const std::string& name : names) {
    const ModelShape model = read_model_shape(find_model(name));
    for (const std::string& note : model.notes) {
      if (drafts_with_own_layers && note.starts_with(kUncountedPredictors)) continue;
      std::string text = (names.size() > 1 ? model.name + ": " : "") + note;
      if (std::ranges::find(notes, text) == notes.end()) notes.push_back(std::move(text));
    }
  }
  if (scenario.gguf != nullptr) notes.push_back(gguf_note(*scenario.gguf));
  if (counted_by_length(scenario))
    notes.push_back(scenario.model.name +
                    " has no tokenizer.json: conversations are counted by their length, a token for every 4 bytes");
  return notes;
}

sim::Machine resolve_machine(const std::string& name) { return config::read_machine_file(find_machine(name)); }

sim::Machine resolve_machine(const config::Scenario& scenario, const std::string& name) {
  sim::Machine machine = resolve_machine(name);
  apply_figures(scenario, machine);
  put_stack(scenario, machine);
  apply_stack_figures(scenario, machine);
  return machine;
}

std::optional<sim::Machine> resolve_decode_machine(const config::Scenario& scenario) {
  if (scenario.decode_machine.empty()) return std::nullopt;
  sim::Machine machine = resolve_machine(scenario.decode_machine);
  put_stack(scenario, machine);
  apply_stack_figures(scenario, machine);
  return machine;
}

void apply_figures(const config::Scenario& scenario, sim::Machine& machine) {
  config::ProblemList problems(scenario.file);
  config::set_figures(machine, scenario.machine_figures, problems);
  problems.throw_if_any();
}

namespace {

// What of a deployment the price of a step has no place for.
void refuse_unpriced_settings(const config::Scenario& scenario) {
  const sim::Deployment& deployment = scenario.deployment;
  const sim::ReplicaDevices devices = deployment.of(ReplicaRole::both);
  if (deployment.devices() != devices.devices() || devices.pipeline_parallel_size > 1 || deployment.is_disaggregated())
    refuse_deployment(scenario, {"a step is predicted on devices that share every layer, tensor_parallel_size of them; "
                                 "pipelines and replicas are simulated by `dculab simulate`"});
  for (const char* key : {"deployment.routing", "deployment.kv_transfer", "deployment.kv_store", "deployment.prefill",
                          "deployment.decode"})
    if (config::find_key(scenario.document, key) != nullptr)
      refuse_key(scenario, key, {"is of served requests, and changes no step; leave it out"});
  if (devices.experts.micro_batches > 1)
    refuse_key(scenario, "deployment.micro_batches",
               {"a step's ops are predicted as one batch; `dculab predict` says beside it what two micro-batches take, "
                "and `dculab simulate` runs them; leave it out"});
}

}  // namespace

ModelShape resolve_part(const config::Scenario& scenario, const ModelShape& model, const sim::Machine& machine) {
  refuse_unpriced_settings(scenario);
  return resolve_replica_part(scenario, model, machine);
}

ModelShape resolve_replica_part(const config::Scenario& scenario, const ModelShape& model,
                                const sim::Machine& machine) {
  const sim::ReplicaDevices devices = scenario.deployment.of(ReplicaRole::both);
  EngineOptions options;
  options.weights = scenario.weights.value_or(model.layer_format());
  options.expert_load = scenario.options.expert_load;
  const std::vector<std::string> found = sim::problems(devices, machine, model, options);
  refuse_deployment(scenario, found);
  return sim::part_of_layers(devices, machine, model, options);
}

namespace {

void refuse_attention_split(const config::Scenario& scenario) {
  const Node* attention = scenario.document.find("attention");
  if (attention == nullptr || attention->children.empty()) return;
  refuse_key(scenario, "attention." + attention->children.front().key,
             {"the CPU's attention kernels serve whole groups and split contexts every " +
              std::to_string(lower::dculab_cpu::kPartitionTokens) + " tokens; leave it out, or ask for a GPU"});
}

// What other programs' kernels have of the kind is their stack's.
void refuse_foreign_split(const config::Scenario& scenario, const sim::Stack& stack) {
  const Node* attention = scenario.document.find("attention");
  if (stack.is_own() || attention == nullptr || attention->children.empty()) return;
  refuse_key(
      scenario, "attention." + attention->children.front().key,
      {"is of our own kernels, and stack " + stack.name + " runs others; see stack.parameters, or leave it out"});
}

// Programs round activations where the checkpoint asks for it and the device has such products; with FP8 weights, and
// INT8 weights of a scale a row (W8A8), that the question asks for, too. Our own kernels do as they are told.
constexpr WeightFormat kW8a8{Dtype::int8, -1};

// llama.cpp multiplies its quantized weights in INT8 where there are no matrix cores (ggml-cuda/mmq.cu: activations are
// rounded, sums scaled group by group), and in F16 where there are.
[[nodiscard]] bool rounds_in_llama_cpp(WeightFormat weights, const sim::Machine& machine) {
  return !machine.has_matrix_cores && weights.group_size > 0 && takes_activations(weights, ActivationMode::int8);
}

[[nodiscard]] ActivationMode default_activations(const config::Scenario& scenario, const ModelShape& model,
                                                 const sim::Machine& machine) {
  if (machine.stack.is_own() || machine.kind == lower::DeviceKind::cpu) return ActivationMode::exact;
  const WeightFormat weights = scenario.weights.value_or(model.layer_format());
  if (lower_case(machine.stack.program) == "llama.cpp")
    return rounds_in_llama_cpp(weights, machine) ? ActivationMode::int8 : ActivationMode::exact;
  const ActivationMode asked = !scenario.weights                  ? model.quantized_activations
                               : weights.dtype == Dtype::fp8_e4m3 ? ActivationMode::fp8
                               : weights == kW8a8                 ? ActivationMode::int8
                                                                  : ActivationMode::exact;
  return lower::activations_of(machine.stack.kernels, weights, asked, model.has_experts(), machine);
}

[[nodiscard]] EngineOptions with_defaults(const config::Scenario& scenario, const ModelShape& model,
                                          lower::DeviceKind kind, EngineOptions defaults) {
  if (kind == lower::DeviceKind::cpu) {
    defaults.activation_dtype = Dtype::f32;
    refuse_attention_split(scenario);
  }
  const bool serves = scenario.workload.kind == config::WorkloadKind::serving;
  if (!serves || scenario.compare || scenario.accuracy)
    refuse_groups_by_load(scenario, "a step has sequences of one set");
  const EngineOptions options = config::resolve_options(scenario, model, defaults);
  if (const auto found = problems(options); !found.empty()) throw InputError(scenario.file, found.front());
  if (const auto found = problems(options, model); !found.empty()) throw InputError(scenario.file, found.front());
  return options;
}

// That a workload runs: of a step its own, else both.
[[nodiscard]] std::vector<Phase> phases_of(const config::Workload& workload) {
  if (workload.kind == config::WorkloadKind::serving) return {Phase::prefill, Phase::decode};
  return {workload.phase};
}

}  // namespace

EngineOptions resolve_options(const config::Scenario& scenario, const ModelShape& model, lower::DeviceKind kind) {
  return with_defaults(scenario, model, kind, {});
}

EngineOptions resolve_options(const config::Scenario& scenario, const ModelShape& model, const sim::Machine& machine) {
  const sim::ProgramDefaults& program = machine.stack.defaults;
  EngineOptions defaults;
  defaults.block_size = program.block_size;
  defaults.max_num_seqs = program.max_num_seqs;
  defaults.max_num_batched_tokens = program.max_num_batched_tokens;
  defaults.activations = default_activations(scenario, model, machine);
  refuse_foreign_split(scenario, machine.stack);
  const EngineOptions options = with_defaults(scenario, model, machine.kind, defaults);
  const std::vector<Phase> phases = phases_of(scenario.workload);
  require_served(machine, model, options, phases);
  refuse_idle_parameters(scenario.stack_figures, machine, model, options, phases);
  require_sequences(machine.stack, std::max(options.max_num_seqs, scenario.workload.batch));
  return options;
}

Batch resolve_batch(const config::Workload& workload, const ModelShape& model, const EngineOptions& options) {
  const KvRetention& retention = options.kv_retention;
  const std::int64_t capacity = kv_capacity(retention, options.block_size);
  if (workload.phase == Phase::prefill && workload.context_tokens > capacity)
    throw InputError("a prefill of " + std::to_string(workload.context_tokens) + " tokens takes several steps when " +
                     std::to_string(capacity) + " are kept (kv_cache.retention " + std::string(name(retention.policy)) +
                     "); ask for a shorter one, or for a decode");
  const bool streams = kv_policy(retention.policy).moves_positions && capacity <= model.max_position_embeddings;
  if (!streams && workload.context_tokens > model.max_position_embeddings)
    throw InputError("context of " + std::to_string(workload.context_tokens) + " tokens is longer than " + model.name +
                     " allows (max_position_embeddings = " + std::to_string(model.max_position_embeddings) +
                     "); choose a shorter context");
  Batch batch = uniform_batch(workload.phase, workload.batch, workload.context_tokens, retention, options.block_size);
  for (SequenceSlice& slice : batch.sequences) {
    slice.num_computed_tokens += workload.cached_tokens;
    slice.num_new_tokens -= workload.cached_tokens;
  }
  return sim::with_drafts(std::move(batch), options.speculative_config.shape);
}

bool has_pools(const config::Scenario& scenario) {
  return scenario.workload.kind == config::WorkloadKind::serving && scenario.deployment.is_disaggregated();
}

}  // namespace dculab::study

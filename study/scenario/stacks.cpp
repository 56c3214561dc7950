#include "study/scenario/stacks.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "config/kernel_parameters.hpp"
#include "config/stack_figure.hpp"
#include "config/stack_file.hpp"
#include "config/weight_format_text.hpp"
#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "core/kivi.hpp"
#include "model/attention_work.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] bool same_word(const std::string& a, const std::string& b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

[[nodiscard]] bool is_same_figure(const Node& a, const Node& b) { return a.key == b.key && a.text == b.text; }

[[nodiscard]] std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

[[nodiscard]] std::string offered_for(std::span<const sim::Stack> stacks, const sim::Machine& machine) {
  std::vector<std::string> names;
  for (const sim::Stack& stack : stacks)
    if (sim::is_for(stack, machine)) names.push_back(stack.name);
  return join(names);
}

[[nodiscard]] std::vector<Op> ops_of(const ModelShape& model, const EngineOptions& options, const Batch& batch,
                                     OpKind kind) {
  std::vector<Op> ops = plan_step(model, options, batch).ops;
  std::erase_if(ops, [kind](const Op& op) { return op.kind != kind; });
  return ops;
}

// The attention ops of one sequence, in all kinds of layers that have any.
[[nodiscard]] std::vector<Op> attention_of(const ModelShape& model, const EngineOptions& options, Phase phase) {
  return ops_of(model, options, uniform_batch(phase, 1, 2),
                phase == Phase::decode ? OpKind::attention_decode : OpKind::attention_prefill);
}

// The products of a step, with enough rows that no kernel for a few of them takes the layers'.
[[nodiscard]] std::vector<Op> products_of(const ModelShape& model, const EngineOptions& options) {
  constexpr int kManyRows = 64;
  return ops_of(model, options, uniform_batch(Phase::prefill, 1, kManyRows), OpKind::matmul);
}

template <class Kernel>
[[nodiscard]] std::string why_none(const std::vector<const Kernel*>& kernels, const Op& op,
                                   const sim::Machine& machine) {
  std::string text;
  for (const Kernel* kernel : kernels) {
    const std::string reason = why_not(*kernel, op, machine);
    if (reason.empty()) return {};
    text += (text.empty() ? "" : "; ") + std::string(kernel->name) + " " + reason;
  }
  return text;
}

template <class T, class Text>
void require_one_of(const std::vector<T>& allowed, const T& value, const std::string& what, const sim::Stack& stack,
                    Text text) {
  if (allowed.empty() || std::ranges::find(allowed, value) != allowed.end()) return;
  std::vector<std::string> words;
  for (const T& each : allowed) words.push_back(text(each));
  throw InputError("stack " + stack.name, what + " " + text(value) + " is not served; it takes " + join(words));
}

[[nodiscard]] std::string weights_text(const EngineOptions& options) {
  const bool as_they_are =
      options.activations == ActivationMode::exact || !takes_activations(options.weights, options.activations);
  return "weights of " + config::weight_format_text(options.weights) +
         (as_they_are ? "" : " with activations of " + std::string(name(options.activations)));
}

void require_products(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const sim::Stack& stack = machine.stack;
  require_one_of(stack.limits.weight_dtypes, options.weights.dtype, "weights", stack,
                 [](Dtype dtype) { return std::string(name(dtype)); });
  for (const Op& op : products_of(model, options))
    if (const std::string why = why_none(stack.kernels.matmul, op, machine); !why.empty())
      throw InputError("stack " + stack.name, "no kernel serves " + std::string(op.name) + " of " + model.name +
                                                  " with " + weights_text(options) + ": " + why);
}

void require_attention(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const sim::Stack& stack = machine.stack;
  if (model.has_alibi() && !stack.limits.alibi)
    throw InputError("stack " + stack.name, "ALiBi, which " + model.name + " has, is not served");
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const auto& kernels = phase == Phase::prefill ? stack.kernels.attention_prefill : stack.kernels.attention_decode;
    for (const Op& op : attention_of(model, options, phase)) {
      const std::string why = why_none(kernels, op, machine);
      if (why.empty()) continue;
      throw InputError("stack " + stack.name,
                       "no kernel serves " + std::string(phase == Phase::prefill ? "prefill" : "decode") +
                           " attention of " + model.name + " with block_size " + std::to_string(options.block_size) +
                           " and kv_cache_dtype " + std::string(name(options.kv_cache_dtype)) + ": " + why);
    }
  }
}

// A choice for a kernel that the stack lists, and that runs none of the model's attention.
void refuse_idle_parameters(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const lower::Kernels& kernels = machine.stack.kernels;
  std::string serving;
  for (const Phase phase : {Phase::prefill, Phase::decode})
    for (const Op& op : attention_of(model, options, phase)) {
      const std::string name(lower::attention_kernel_of(kernels, op, machine).name);
      if (serving.find(name) == serving.npos) serving += (serving.empty() ? "" : " and ") + name;
    }
  for (const config::StackParameter& each : config::parameters_of(machine.stack)) {
    const std::string kernel = each.key.substr(each.key.find('.') + 1, each.key.rfind('.') - each.key.find('.') - 1);
    if (kernels.parameters[*each.parameter] == each.parameter->standard || serving.find(kernel) != serving.npos)
      continue;
    throw InputError("stack " + machine.stack.name,
                     each.key + ": " + kernel + " runs nothing here; attention of " + model.name + " is by " + serving);
  }
}

// Of our own kernels: why none takes the weights, if so.
[[nodiscard]] std::vector<std::string> unserved_products(const sim::Machine& machine, const ModelShape& model,
                                                         const EngineOptions& options) {
  const std::string where = machine.kind == lower::DeviceKind::cpu ? "" : " on a GPU";
  for (const Op& op : products_of(model, options)) {
    const lower::MatmulKernel& kernel = lower::matmul_kernel_of(machine.stack.kernels, op, machine);
    const std::string why = why_not(kernel, op, machine);
    if (!why.empty())
      return {"no kernel of dculab multiplies " + weights_text(options) + where + ": priced as if one did; " +
              std::string(kernel.name) + " " + why};
  }
  return {};
}

[[nodiscard]] std::vector<std::string> unserved_by_own(const sim::Machine& machine, const ModelShape& model,
                                                       const EngineOptions& options) {
  std::vector<std::string> found = unserved_products(machine, model, options);
  if (machine.kind == lower::DeviceKind::cpu) return found;
  const std::string priced = " on a GPU: priced as if one did";
  const auto is_latent = [](const LayerKind& kind) { return kind.mla() != nullptr; };
  if (std::ranges::any_of(model.kinds, is_latent)) found.push_back("no kernel of dculab attends over latents" + priced);
  if (is_kivi(options.kv_cache_dtype))
    found.push_back("no kernel of dculab takes a KV cache of " + std::string(name(options.kv_cache_dtype)) + priced);
  if (options.kv_retention.policy != RetentionPolicy::all)
    found.push_back("no kernel of dculab does kv_cache.retention " + std::string(name(options.kv_retention.policy)) +
                    priced);
  return found;
}

[[nodiscard]] std::vector<std::string> unknown_of_others(const sim::Machine& machine, const ModelShape& model,
                                                         const EngineOptions& options) {
  std::vector<std::string> found;
  if (!model.has_alibi()) return found;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const Op op = attention_of(model, options, phase).front();
    const lower::AttentionKernel& kernel = lower::attention_kernel_of(machine.stack.kernels, op, machine);
    if (kernel.limits.alibi != lower::Alibi::unknown) continue;
    std::string text = "whether " + std::string(kernel.name) + " takes ALiBi's slopes, which " + model.name +
                       " needs, is not known: priced as if it did";
    if (std::ranges::find(found, text) == found.end()) found.push_back(std::move(text));
  }
  return found;
}

}  // namespace

std::vector<sim::Stack> shipped_stacks() {
  std::vector<sim::Stack> stacks;
  for (const std::filesystem::path& file : stack_files()) stacks.push_back(config::read_stack_file(file));
  return stacks;
}

const sim::Stack& choose_stack(std::span<const sim::Stack> stacks, const std::string& name,
                               const sim::Machine& machine) {
  bool is_known = false;
  const sim::Stack* chosen = nullptr;
  for (const sim::Stack& stack : stacks) {
    if (!same_word(stack.name, name) && !same_word(stack.program, name)) continue;
    is_known = true;
    if (!sim::is_for(stack, machine)) continue;
    if (same_word(stack.name, name)) return stack;
    if (chosen == nullptr || stack.age < chosen->age) chosen = &stack;
  }
  if (chosen != nullptr) return *chosen;
  throw InputError((is_known ? "stack '" + name + "' is not for " + machine.name : "no stack '" + name + "'") +
                   " (offered for " + machine.name + ": " + offered_for(stacks, machine) + ")");
}

sim::Stack resolve_stack(const std::string& name_or_file, const sim::Machine& machine) {
  if (const auto file = try_find_stack_file(name_or_file)) {
    sim::Stack stack = config::read_stack_file(*file);
    if (!sim::is_for(stack, machine))
      throw InputError(name_or_file, "stack " + stack.name + " is not for " + machine.name);
    return sim::stack_on(machine, std::move(stack));
  }
  return sim::stack_on(machine, choose_stack(shipped_stacks(), name_or_file, machine));
}

void put_stack(const config::Scenario& scenario, sim::Machine& machine) {
  if (scenario.stack != machine.stack.name) machine.stack = resolve_stack(scenario.stack, machine);
}

void apply_stack_figures(const config::Scenario& scenario, sim::Machine& machine) {
  config::ProblemList problems(scenario.file);
  config::set_stack_figures(machine, scenario.stack_figures, problems);
  problems.throw_if_any();
}

bool same_stack(const config::Scenario& one, const config::Scenario& other) {
  return one.stack == other.stack && std::ranges::equal(one.stack_figures, other.stack_figures, is_same_figure);
}

bool same_machine_figures(const config::Scenario& one, const config::Scenario& other) {
  return same_stack(one, other) && std::ranges::equal(one.machine_figures, other.machine_figures, is_same_figure);
}

std::vector<std::filesystem::path> stack_files_of(const std::string& name_or_file) {
  if (const auto file = try_find_stack_file(name_or_file)) return {*file};
  std::vector<std::filesystem::path> files;
  if (name_or_file == sim::Stack{}.name) return files;
  for (const std::filesystem::path& file : stack_files()) {
    const sim::Stack stack = config::read_stack_file(file);
    if (same_word(stack.name, name_or_file) || same_word(stack.program, name_or_file)) files.push_back(file);
  }
  return files;
}

void require_sequences(const sim::Stack& stack, int sequences) {
  const int most = stack.limits.max_num_seqs;
  if (most > 0 && sequences > most)
    throw InputError("stack " + stack.name, "runs at most " + std::to_string(most) + " sequences at a time, and " +
                                                std::to_string(sequences) + " are asked for");
}

void require_served(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const sim::Stack& stack = machine.stack;
  if (stack.is_own() || machine.kind == lower::DeviceKind::cpu) return;
  require_one_of(stack.limits.block_sizes, options.block_size, "block_size", stack,
                 [](int size) { return std::to_string(size); });
  require_one_of(stack.limits.kv_cache_dtypes, options.kv_cache_dtype, "kv_cache_dtype", stack,
                 [](Dtype dtype) { return std::string(name(dtype)); });
  if (options.kv_retention.policy != RetentionPolicy::all)
    throw InputError("stack " + stack.name, "kv_cache.retention " + std::string(name(options.kv_retention.policy)) +
                                                " is not served: its kernels keep every token");
  require_products(machine, model, options);
  require_attention(machine, model, options);
  refuse_idle_parameters(machine, model, options);
}

std::vector<std::string> unserved(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  const bool is_own = machine.stack.is_own() || machine.kind == lower::DeviceKind::cpu;
  std::vector<std::string> found =
      is_own ? unserved_by_own(machine, model, options) : unknown_of_others(machine, model, options);
  const auto has_soft_cap = [](const LayerKind& kind) { return kind.has_kv_heads() && kind.gqa().logit_soft_cap > 0; };
  if (std::ranges::any_of(model.kinds, has_soft_cap))
    found.emplace_back(
        "the soft cap of attention scores is not priced: compute-bound attention takes longer than this");
  return found;
}

std::vector<std::string> idle_reached(const sim::Machine& machine) {
  std::vector<std::string> idle;
  const auto is_called_so = [](const sim::Stack& stack, const std::string& section) {
    return same_word(stack.name, section) || same_word(stack.program, section);
  };
  for (const auto& [section, figures] : machine.reached)
    if (!same_word(section, std::string(sim::kAnyStack)) && !is_called_so(machine.stack, section))
      idle.push_back(section);
  if (machine.calibration)  // a calibration by points writes of kernel libraries, which stand in points alone
    std::erase_if(idle, [&](const std::string& section) { return machine.calibration->intervals.contains(section); });
  if (idle.empty()) return idle;
  for (const sim::Stack& stack : shipped_stacks())
    std::erase_if(idle, [&](const std::string& section) { return is_called_so(stack, section); });
  for (std::string& section : idle)
    section =
        "no shipped stack or program is called '" + section + "': the machine's reached." + section + " has no effect";
  return idle;
}

std::string whose_kernels(const sim::Machine& machine) {
  return "kernels of " + machine.stack.name + ": " + machine.stack.description;
}

std::vector<std::string> whose_kernels(const config::Scenario& scenario) {
  std::vector<std::string> lines;
  const auto is_stack = [](const config::SweepAxis& axis) { return axis.key == "stack" || axis.key == "stack.name"; };
  if (std::ranges::any_of(scenario.sweep, is_stack)) return lines;
  for (const std::string& name : scenario.machines) {
    if (name == "host") continue;
    std::string line = whose_kernels(resolve_machine(scenario, name));
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace dculab::study

#include "config/profile/step_search.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace dculab::config {
namespace {

// Kernels of one kind in a row; others may stand between them.
struct Run {
  KernelRole role = KernelRole::unknown;
  std::vector<std::size_t> kernels;
};

[[nodiscard]] bool is_attention(KernelRole role) {
  return role == KernelRole::prefill_attention || role == KernelRole::decode_attention ||
         role == KernelRole::any_attention;
}

// One name for both phases goes with whichever phase stands beside it.
[[nodiscard]] std::optional<KernelRole> joined(KernelRole a, KernelRole b) {
  if (a == b) return a;
  if (is_attention(a) && b == KernelRole::any_attention) return a;
  if (is_attention(b) && a == KernelRole::any_attention) return b;
  return std::nullopt;
}

[[nodiscard]] std::vector<Run> collect_runs(std::span<const KernelRecord> kernels,
                                            std::span<const NamedKernels> named) {
  std::vector<Run> runs;
  std::unordered_map<std::string_view, KernelRole> known;  // a profile repeats few names very often
  for (std::size_t index = 0; index < kernels.size(); ++index) {
    const auto [found, is_new] = known.emplace(kernels[index].name, KernelRole::unknown);
    if (is_new) found->second = role_of(kernels[index].name, named);
    const KernelRole role = found->second;
    if (is_other(role)) continue;
    const auto same = runs.empty() ? std::nullopt : joined(runs.back().role, role);
    if (!same) runs.emplace_back();
    runs.back().role = same.value_or(role);
    runs.back().kernels.push_back(index);
  }
  return runs;
}

// Indices into plan.ops in order of execution: layers one after the other, each with the ops of its kind.
[[nodiscard]] std::vector<std::size_t> execution_order(const StepPlan& plan, std::span<const std::uint8_t> layers) {
  std::vector<std::size_t> order;
  const auto add = [&](Stage stage, std::uint8_t kind) {
    for (std::size_t index = 0; index < plan.ops.size(); ++index)
      if (plan.ops[index].stage == stage && plan.ops[index].layer_kind == kind) order.push_back(index);
  };
  add(Stage::before_layers, 0);
  for (const std::uint8_t kind : layers) add(Stage::layer, kind);
  add(Stage::after_layers, 0);
  return order;
}

class StepMatcher {
 public:
  StepMatcher(std::span<const Run> runs, const StepPlan& plan, std::span<const std::uint8_t> layers)
      : runs_(runs), plan_(plan), order_(execution_order(plan, layers)) {}

  // The step that begins with `run`, which is moved behind its end; nothing, and `run` stays, where none begins.
  [[nodiscard]] std::optional<FoundStep> match(std::size_t& run) const {
    FoundStep step;
    step.kernels.resize(plan_.ops.size());
    std::size_t at = run;
    for (std::size_t place = 0; place < order_.size(); ++place) {
      // A gather inside a step picks the rows whose logits are wanted.
      while (place > 0 && at < runs_.size() && runs_[at].role == KernelRole::embedding) ++at;
      const std::size_t op = order_[place];
      if (at < runs_.size() && serves(runs_[at].role, plan_.ops[op].kind)) {
        const std::vector<std::size_t>& kernels = runs_[at++].kernels;
        step.kernels[op].insert(step.kernels[op].end(), kernels.begin(), kernels.end());
      } else if (!may_be_missing(plan_.ops[op], at)) {
        return std::nullopt;
      }
    }
    if (inside_layers(run) || layer_goes_on(at)) return std::nullopt;
    step.first = runs_[run].kernels.front();
    step.last = runs_[at - 1].kernels.back();
    run = at;
    return step;
  }

 private:
  // Whether an op may have no kernel of its own before `run`.
  [[nodiscard]] bool may_be_missing(const Op& op, std::size_t run) const {
    if (op.kind == OpKind::activation_mul) return run > 0 && runs_[run - 1].role == KernelRole::matmul_and_activation;
    return op.kind == OpKind::embedding || op.kind == OpKind::rope_and_cache;
  }

  // Whether `run` stands right behind a layer's last op: what the experts say combined, or an activation, then the
  // matmul that ends the layer.
  [[nodiscard]] bool inside_layers(std::size_t run) const {
    if (run == 0 || runs_[run].role == KernelRole::embedding) return false;
    if (runs_[run - 1].role == KernelRole::combining) return true;
    return run >= 2 && runs_[run - 1].role == KernelRole::matmul && runs_[run - 2].role == KernelRole::activation;
  }

  // Whether what seemed the final matmul was the first of another layer.
  [[nodiscard]] bool layer_goes_on(std::size_t run) const {
    return run < runs_.size() && (runs_[run].role == KernelRole::rope_and_cache || is_attention(runs_[run].role));
  }

  std::span<const Run> runs_;
  const StepPlan& plan_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::vector<FoundStep> find_steps(std::span<const KernelRecord> kernels, const StepPlan& plan,
                                  std::span<const std::uint8_t> layers, std::span<const NamedKernels> named) {
  const std::vector<Run> runs = collect_runs(kernels, named);
  const StepMatcher matcher(runs, plan, layers);
  std::vector<FoundStep> steps;
  std::size_t end_of_previous = 0;
  for (std::size_t run = 0; run < runs.size();) {
    const std::size_t begin = run;
    if (auto step = matcher.match(run)) {
      step->follows_previous = !steps.empty() && begin == end_of_previous;
      end_of_previous = run;
      steps.push_back(std::move(*step));
    } else {
      ++run;
    }
  }
  return steps;
}

}  // namespace dculab::config

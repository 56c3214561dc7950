#include "sim/study/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/cost/micro_batches.hpp"

namespace dculab::sim {
namespace {

// What one kernel after the other, over and over, touches before it comes back.
[[nodiscard]] Bytes footprint_alone(const Machine& machine, const Recipe& recipe) {
  Bytes footprint = recipe.timed == Timed::cold_kernel ? machine.dram().size : Bytes{};
  const StepPlan& plan = recipe.steps.front().plan;
  for (const Op& op : plan.ops) footprint += lower::lower(op, plan, machine, machine.stack.kernels).unique_bytes();
  return footprint;
}

[[nodiscard]] Seconds price_alone(const Machine& machine, const Recipe& recipe) {
  const Bytes footprint = footprint_alone(machine, recipe);
  const StepPlan& plan = recipe.steps.front().plan;
  Seconds total;
  for (const Op& op : plan.ops) total += price_op(machine, plan, op, footprint).seconds;
  return total;
}

[[nodiscard]] Seconds call_time(const Machine& machine, const Recipe& recipe) {
  return recipe.holds_call ? machine.overheads.timed_call : Seconds{};
}

// Time by what bounds it.
using Shares = std::map<std::string, Seconds>;

[[nodiscard]] Shares shares_alone(const Machine& machine, const Recipe& recipe) {
  Shares shares;
  const StepPlan& plan = recipe.steps.front().plan;
  const Bytes footprint = footprint_alone(machine, recipe);
  for (const Op& op : plan.ops) {
    const OpPrice price = price_op(machine, plan, op, footprint);
    shares[std::string(name(price.bound, machine))] += price.seconds;
  }
  shares["call"] += call_time(machine, recipe);
  return shares;
}

[[nodiscard]] Shares shares_of_engine(const Machine& machine, const Recipe& recipe) {
  Shares shares;
  for (const RecipeStep& step : recipe.steps) {
    for (const StepPlan* plan : {&step.plan, step.beside ? &*step.beside : nullptr}) {
      if (plan == nullptr) continue;
      const StepPrice price = price_step(machine, *plan);
      shares["host"] += step.times * price.host;
      for (const OpPrice& op : price.ops)
        shares[std::string(name(op.bound, machine))] += step.times * op.all_executions();
    }
  }
  return shares;
}

}  // namespace

RecipeStep recipe_step(const ModelShape& part, const EngineOptions& options, const Batch& batch, int micro_batches,
                       double times) {
  Batch first, second;
  if (micro_batches < 2 || !split_batch(batch, first, second)) return {plan_step(part, options, batch), times, {}};
  return {plan_step(part, options, std::move(first)), times, plan_step(part, options, std::move(second))};
}

std::optional<TwoMicroBatches> two_micro_batches(const Machine& machine, const ModelShape& part,
                                                 const EngineOptions& options, const Batch& batch) {
  const RecipeStep step = recipe_step(part, options, batch, 2, 1);
  if (!step.beside) return std::nullopt;
  const OverlappedPrice both =
      overlapped(machine, step.plan, price_step(machine, step.plan), *step.beside, price_step(machine, *step.beside));
  return TwoMicroBatches{both.seconds, both.hidden};
}

Seconds price_recipe_step(const Machine& machine, const RecipeStep& step) {
  const StepPrice price = price_step(machine, step.plan);
  if (!step.beside) return price.seconds;
  return overlapped(machine, step.plan, price, *step.beside, price_step(machine, *step.beside)).seconds;
}

PriceKind kind_of(const Recipe& recipe) {
  if (recipe.probe) return PriceKind::hardware;
  if (recipe.timed == Timed::engine) return PriceKind::step;
  const std::vector<Op>& ops = recipe.steps.front().plan.ops;
  const auto any = [&ops](auto is) { return std::ranges::any_of(ops, is); };
  if (any([](const Op& op) { return op.attention.num_sequences > 0; })) return PriceKind::attention;
  return any([](const Op& op) { return op.kind == OpKind::all_reduce; }) ? PriceKind::exchange : PriceKind::product;
}

Recipe kernel_recipe(StepPlan kernels) {
  Recipe recipe;
  recipe.timed = Timed::kernel;
  for (Op& op : kernels.ops) op.count = 1;
  recipe.steps.push_back({std::move(kernels), 1});
  return recipe;
}

Seconds price_recipe(const Machine& machine, const Recipe& recipe) {
  if (recipe.probe) return probe_time(machine, *recipe.probe) + call_time(machine, recipe);
  if (recipe.timed != Timed::engine) return price_alone(machine, recipe) + call_time(machine, recipe);
  Seconds total;
  StepPrice price;
  for (const RecipeStep& step : recipe.steps) {
    if (!step.beside) price_step(machine, step.plan, price);
    total += step.times * (step.beside ? price_recipe_step(machine, step) : price.seconds);
  }
  return total;
}

std::optional<std::vector<Leaning>> leanings(const Machine& machine, const std::vector<const Recipe*>& recipes) {
  if (recipes.empty()) return std::nullopt;
  return leanings(machine, [&recipes](const Machine& candidate) {
    std::vector<Seconds> times;
    for (const Recipe* recipe : recipes) times.push_back(price_recipe(candidate, *recipe));
    return times;
  });
}

Seconds recipe_floor(const Machine& machine, const Recipe& recipe) {
  if (recipe.probe) return probe_floor(machine, *recipe.probe);
  Seconds total;
  for (const RecipeStep& step : recipe.steps) {
    total += step.times * step_floor(machine, step.plan);
    if (step.beside) total += step.times * step_floor(machine, *step.beside);
  }
  return total;
}

std::string recipe_bound(const Machine& machine, const Recipe& recipe) {
  if (recipe.probe) return probe_bound(machine, *recipe.probe);
  const Shares shares =
      recipe.timed == Timed::engine ? shares_of_engine(machine, recipe) : shares_alone(machine, recipe);
  return std::ranges::max_element(shares, {}, [](const auto& share) { return share.second; })->first;
}

Confidence recipe_confidence(const Machine& machine, const Recipe& recipe, Seconds predicted) {
  const Spread spread = point_spread(machine, kind_of(recipe)).value_or(Spread{});
  const auto of_priors = [&recipe](const Machine& moved) { return price_recipe(moved, recipe); };
  const double factor =
      spread.basis != Basis::priors ? spread.factor : std::exp(kNormalQuantile95 * prior_log_sigma(machine, of_priors));
  const Seconds floor = std::min(predicted, recipe_floor(machine, recipe));
  return {std::max(predicted / factor, floor), predicted * factor, spread.basis};
}

std::optional<double> ratio_factor(const PricedRecipe& before, const PricedRecipe& after) {
  if (before.machine.name != after.machine.name || before.machine.calibration || after.machine.calibration)
    return std::nullopt;
  const auto shifts_of = [](const PricedRecipe& priced) {
    return prior_shifts(priced.machine, [&priced](const Machine& moved) { return price_recipe(moved, priced.recipe); });
  };
  const std::vector<double> first = shifts_of(before), second = shifts_of(after);
  double variance = 0;
  for (std::size_t index = 0; index < first.size(); ++index) variance += std::pow(second[index] - first[index], 2);
  return std::exp(kNormalQuantile95 * std::sqrt(variance));
}

}  // namespace dculab::sim

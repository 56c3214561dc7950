#include "sim/study/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/parameters.hpp"

namespace dculab::sim {
namespace {

// What one kernel after the other, over and over, touches before it comes back.
[[nodiscard]] Bytes footprint_alone(const Machine& machine, const Recipe& recipe) {
  Bytes footprint = recipe.timed == Timed::cold_kernel ? machine.dram().size : Bytes{};
  for (const Op& op : recipe.steps.front().plan.ops) footprint += op.unique_bytes();
  return footprint;
}

[[nodiscard]] Seconds price_alone(const Machine& machine, const Recipe& recipe) {
  const Bytes footprint = footprint_alone(machine, recipe);
  Seconds total;
  for (const Op& op : recipe.steps.front().plan.ops) total += price_op(machine, op, footprint).seconds;
  return total;
}

[[nodiscard]] Seconds chain_of(const Machine& machine, const RecipeStep& step) {
  const std::size_t levels = machine.memory.size();
  return step.chained_loads * machine.memory[levels > 1 ? levels - 2 : 0].latency;
}

}  // namespace

Recipe kernel_recipe(const Op& op) {
  Recipe recipe;
  recipe.timed = Timed::kernel;
  recipe.steps.resize(1);
  recipe.steps.front().plan.ops.push_back(op);
  recipe.steps.front().plan.ops.front().count = 1;
  return recipe;
}

Seconds price_recipe(const Machine& machine, const Recipe& recipe) {
  if (recipe.timed != Timed::engine) {
    const RecipeStep& kernel = recipe.steps.front();
    return price_alone(machine, recipe) + chain_of(machine, kernel);
  }
  Seconds total;
  StepPrice price;
  for (const RecipeStep& step : recipe.steps) {
    price_step(machine, step.plan, price);
    total += step.times * (price.seconds + step.exchange + chain_of(machine, step));
  }
  return total;
}

Seconds recipe_floor(const Machine& machine, const Recipe& recipe) {
  Seconds total;
  for (const RecipeStep& step : recipe.steps) total += step.times * step_floor(machine, step.plan);
  return total;
}

std::string recipe_bound(const Machine& machine, const Recipe& recipe) {
  if (recipe.timed != Timed::engine) {
    const Op& op = recipe.steps.front().plan.ops.front();
    return std::string(name(price_op(machine, op, footprint_alone(machine, recipe)).bound, machine));
  }
  std::map<std::string, Seconds> share;
  for (const RecipeStep& step : recipe.steps) {
    const StepPrice price = price_step(machine, step.plan);
    share["host"] += step.times * price.host;
    share["exchange"] += step.times * step.exchange;
    share["latency"] += step.times * chain_of(machine, step);
    for (const OpPrice& op : price.ops) share[std::string(name(op.bound, machine))] += step.times * op.all_executions();
  }
  return std::max_element(share.begin(), share.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

double recipe_log_sigma(const Machine& machine, const Recipe& recipe) {
  return prior_log_sigma(machine, [&recipe](const Machine& moved) { return price_recipe(moved, recipe); });
}

}  // namespace dculab::sim

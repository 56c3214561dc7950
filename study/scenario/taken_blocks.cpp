#include "study/scenario/taken_blocks.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"

namespace dculab::study {
namespace {

constexpr const char* kBlockSize = "kv_cache.block_size";

// In both phases, whichever the point is of: a server's cache has one size.
[[nodiscard]] bool is_taken(const config::Scenario& point, const sim::Machine& machine) {
  const ModelShape model = resolve_model(point);
  try {
    const EngineOptions options = resolve_options(point, model, machine.kind);
    const std::vector<Phase> phases{Phase::prefill, Phase::decode};
    require_served(machine, model, options, phases);
    refuse_idle_parameters(point.stack_figures, machine, model, options, phases);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

[[nodiscard]] std::string block_size_of(const config::SweepPoint& point) {
  return std::ranges::find(point.choices, kBlockSize, &config::Override::first)->second;
}

}  // namespace

TakenPoints taken_points(const config::Scenario& scenario, const sim::Machine& machine) {
  const auto is_swept = [&scenario](const char* key) {
    return std::ranges::find(scenario.sweep, key, &config::SweepAxis::key) != scenario.sweep.end();
  };
  TakenPoints taken{config::sweep_points(scenario), {}};
  if (machine.stack.is_own() || !is_swept(kBlockSize) || is_swept("stack") || is_swept("stack.name")) return taken;
  std::vector<config::SweepPoint> kept, refused;
  for (config::SweepPoint& point : taken.points)
    (is_taken(point.scenario, machine) ? kept : refused).push_back(std::move(point));
  if (kept.empty()) return {config::sweep_points(scenario), {}};
  for (const config::SweepPoint& point : refused) {
    const std::string size = block_size_of(point);
    const auto has_it = [&size](const config::SweepPoint& each) { return block_size_of(each) == size; };
    if (std::ranges::none_of(kept, has_it) && std::ranges::find(taken.left_out, size) == taken.left_out.end())
      taken.left_out.push_back(size);
  }
  taken.points = std::move(kept);
  return taken;
}

}  // namespace dculab::study

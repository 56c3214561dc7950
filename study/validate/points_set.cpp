#include "study/validate/points_set.hpp"

#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string below_floor(const sim::Machine& machine, const ReadPoint& read) {
  const Seconds measured = read.priced.recipe.time(read.point.value);
  const Seconds floor = sim::recipe_floor(machine, read.priced.recipe);
  if (measured >= floor) return "";
  return "took " + config::short_text(measured) + ", below the " + config::short_text(floor) + " that the peaks of " +
         machine.name + " allow";
}

// Adds the machine of `point` to `set` when it is known.
[[nodiscard]] const sim::Machine& find_machine_of(const config::PublishedPoint& point, PointSet& set) {
  const std::pair key{point.machine, point.software};
  const auto known = set.machines.find(key);
  if (known != set.machines.end()) return known->second;
  const auto file = try_find_machine(point.machine);
  if (!file) throw InputError("no machine '" + point.machine + "' under hwmodels");
  return set.machines.emplace(key, as_run_by(point.software, config::read_machine_file(*file), set.stacks))
      .first->second;
}

}  // namespace

PointSet read_point_set(const std::string& file) {
  PointSet set;
  for (config::PublishedPoint& point : config::read_points_file(file)) {
    ReadPoint read{std::move(point), {}, "", ""};
    try {
      const sim::Machine& machine = find_machine_of(read.point, set);
      read.priced = price_as(read.point, machine);
      read.refused = below_floor(machine, read);
    } catch (const files::ReservedFileError&) {
      throw;
    } catch (const InputError& error) {
      read.unpriced = error.what();
    }
    set.points.push_back(std::move(read));
  }
  return set;
}

sim::PointOrigin origin_of(const config::PublishedPoint& point) {
  return {point.machine, engine_of(point.software), point.software};
}

sim::MeasuredPoint measured(const PointSet& set, const ReadPoint& read) {
  return {origin_of(read.point), std::string(config::name(read.point.kind)), &set.machine_of(read), &read.priced.recipe,
          read.priced.recipe.time(read.point.value)};
}

}  // namespace dculab::study

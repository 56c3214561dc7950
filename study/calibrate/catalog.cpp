#include "study/calibrate/catalog.hpp"

#include <algorithm>
#include <utility>

#include "config/machine_file.hpp"
#include "config/stack_file.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/figure.hpp"
#include "sim/hardware/stack_fields.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string source_text(const sim::PointCalibration& learned) {
  return "dculab calibrate: " + std::to_string(learned.points()) + " published points";
}

// What the fit moved; the others keep their source. `file`: before it, with the same stack.
void cite_moved(const sim::PointCalibration& learned, const sim::Machine& file, sim::Owner owner,
                sim::Machine& machine) {
  const std::string source = source_text(learned);
  for (const sim::Parameter& parameter : sim::parameters()) {
    if (parameter.owner != owner || sim::get(machine, parameter) == sim::get(file, parameter)) continue;
    const std::string* before = sim::source_of(file, parameter.key);
    config::cite(machine, std::string(parameter.key),
                 learned.tell(file, parameter) ? sim::Evidence::measured : sim::Evidence::inferred,
                 before == nullptr ? source : source + "; began at " + *before);
  }
}

// What `stack` reaches on the machine of `file`, and how well its prices hold there.
void learn_stack(const sim::PointCalibration& learned, const sim::Machine& file, const sim::Stack& stack,
                 sim::Machine& machine) {
  sim::Machine runs = file;
  runs.stack = sim::stack_on(file, stack);
  const sim::PointIntervals intervals = learned.intervals(runs);
  machine.stack = runs.stack;
  machine.stack.reached = learned.reached(runs);
  for (const sim::Owner owner : {sim::Owner::kernels, sim::Owner::program}) cite_moved(learned, runs, owner, machine);
  machine.calibration->intervals[stack.name] = intervals;
}

[[nodiscard]] sim::Stack any_stack() {
  sim::Stack stack;
  stack.name = stack.program = sim::kAnyStack;
  return stack;
}

// `stacks`: as their files have them.
[[nodiscard]] sim::Machine learned_machine(const sim::PointCalibration& learned, const sim::Machine& file,
                                           const std::vector<sim::Stack>& stacks) {
  if (!learned.has_seen(file.vendor) || file.calibration) return file;
  sim::Machine machine = learned.device(file);
  for (const sim::Owner owner : {sim::Owner::device, sim::Owner::host}) cite_moved(learned, file, owner, machine);
  machine.calibration.emplace();
  learn_stack(learned, file, any_stack(), machine);
  for (const sim::Stack& stack : stacks)
    if (learned.has_seen(stack) && sim::is_for(stack, file)) learn_stack(learned, file, stack, machine);
  machine.stack = file.stack;
  return machine;
}

[[nodiscard]] sim::Stack learned_stack(const sim::PointCalibration& learned, const sim::Stack& file) {
  if (!learned.has_seen(file)) return file;
  sim::Stack stack = learned.anywhere(file);
  const std::string source = "fitted: " + source_text(learned);
  for (const sim::FigureField<sim::Reached>& field : sim::kReached)
    std::visit(
        [&](auto member) {
          if (stack.reached.*member != file.reached.*member)
            stack.sources["reached." + std::string(field.info.key)] = source;
        },
        field.member);
  if (stack.host_per_step != file.host_per_step) stack.sources["host.per_step"] = source;
  if (stack.host_per_sequence != file.host_per_sequence) stack.sources["host.per_sequence"] = source;
  return stack;
}

}  // namespace

Catalog::Catalog() : stacks_(shipped_stacks()), files_(stacks_) {}

Catalog::Catalog(std::shared_ptr<const sim::PointCalibration> learned, const std::vector<sim::Stack>& libraries)
    : Catalog() {
  learned_ = std::move(learned);
  for (sim::Stack& stack : stacks_) stack = learned_stack(*learned_, stack);
  files_.insert(files_.end(), libraries.begin(), libraries.end());
}

const sim::Machine& Catalog::machine(const std::string& name) {
  const auto known = machines_.find(name);
  if (known != machines_.end()) return known->second;
  const auto path = try_find_machine(name);
  if (!path) throw InputError("no machine '" + name + "' under hwmodels");
  sim::Machine file = config::read_machine_file(path->string());
  return machines_.emplace(name, learned_ ? learned_machine(*learned_, file, files_) : std::move(file)).first->second;
}

std::vector<std::filesystem::path> Catalog::write(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> written;
  const auto write_file = [&](const std::string& kind, const std::string& name, const std::string& text) {
    written.push_back(std::filesystem::path(kind) / (name + ".yaml"));
    std::filesystem::create_directories(folder / kind);
    files::write_file_atomically((folder / written.back()).string(), text);
  };
  for (const std::string& name : machine_names())
    if (const sim::Machine& known = machine(name); known.calibration && !known.calibration->intervals.empty())
      write_file("hwmodels", name, config::machine_yaml(known));
  for (const sim::Stack& stack : stacks_)
    if (learned_->has_seen(stack)) write_file("stacks", stack.name, config::stack_yaml(stack));
  return written;
}

std::vector<LearnedIntervals> learned_intervals(Catalog& catalog) {
  std::vector<LearnedIntervals> learned;
  for (const std::string& name : machine_names()) {
    const auto& calibration = catalog.machine(name).calibration;
    if (!calibration) continue;
    for (const auto& [stack, intervals] : calibration->intervals)
      if (intervals.rows > 0) learned.push_back({name, stack, intervals});
  }
  return learned;
}

}  // namespace dculab::study

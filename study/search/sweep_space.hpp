// The points of a study's sweep, each made on its own: what a point's keys say becomes a step to price, or requests to
// serve.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "config/scenario_reader.hpp"
#include "core/workload.hpp"
#include "model/plan_step.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/serving/simulated_server.hpp"
#include "study/search/search_metrics.hpp"

namespace dculab::study {

// What is being done, and the share of it that is done, 0 to 1. May be empty.
using SearchProgress = std::function<void(const std::string& label, double share)>;

// The axes of a scenario, and everything from files that its points need. Several machines are its slowest axis.
class SweepSpace {
 public:
  // Throws InputError for metrics that points of its kind do not have, for what cannot be found, and where `host` has
  // no file.
  explicit SweepSpace(config::Scenario scenario);

  [[nodiscard]] const config::Scenario& scenario() const { return scenario_; }
  // As it was read, as JSON.
  [[nodiscard]] const std::string& document() const { return document_; }
  [[nodiscard]] const std::vector<config::SweepAxis>& axes() const { return scenario_.sweep; }
  [[nodiscard]] std::uint64_t size() const { return config::num_points(scenario_.sweep); }
  [[nodiscard]] bool is_served() const { return scenario_.workload.kind == config::WorkloadKind::serving; }
  // Of each point's figures, in their order.
  [[nodiscard]] std::span<const std::string_view> metrics() const { return search_metrics(scenario_.workload.kind); }
  [[nodiscard]] std::size_t metric(std::string_view name) const { return metric_index(metrics(), name); }
  // The metrics that the question names.
  [[nodiscard]] const std::vector<std::size_t>& asked() const { return asked_; }
  [[nodiscard]] std::vector<config::Override> choices(std::uint64_t point) const {
    return config::choices_at(scenario_.sweep, point);
  }
  [[nodiscard]] const sim::Machine& machine(const std::string& name) const { return machines_.at(name); }
  [[nodiscard]] const ModelShape& model(const std::string& name) const { return models_.at(name); }

  // Of everything that the points' figures depend on: this program, the scenario, its machines, stacks, models and
  // requests.
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

 private:
  void load(const std::vector<std::string>& machines, const std::vector<std::string>& models);
  void load_requests(const std::vector<std::string>& models);

  config::Scenario scenario_;
  std::string document_;
  std::vector<std::size_t> asked_;
  std::map<std::string, sim::Machine> machines_;
  std::map<std::string, ModelShape> models_;
  std::uint64_t identity_ = 0;
};

// What is asked at a point.
struct SweepCase {
  sim::Machine machine;
  ModelShape model;  // to serve; of a step, what each device has of it
  EngineOptions options;
  StepPlan plan;              // the step; where requests are served, none
  RequestWorkload requests;   // to serve; of a step, none
  config::Scenario scenario;  // the point's; its document has the base's objective, pareto and constraints no more
  std::optional<sim::Speculation> speculation{};  // where requests are served with drafts
  std::optional<FewHeads> few_heads{};            // where they are served with two sets of KV heads

  [[nodiscard]] bool is_served() const { return scenario.workload.kind == config::WorkloadKind::serving; }
  [[nodiscard]] sim::SimulatedServer server_on(const sim::Machine& other) const {
    return {.machine = other,
            .model = model,
            .options = options,
            .deployment = scenario.deployment,
            .speculation = speculation,
            .few_heads = few_heads};
  }
};

// Goes through points in any order, fastest when only the last axes change. One for each thread.
class SweepCursor {
 public:
  explicit SweepCursor(const SweepSpace& space);

  // The point, planned. Throws InputError when there can be no such step or server: the reason, without a place.
  const SweepCase& at(std::uint64_t point);

 private:
  void move_to(std::uint64_t point);
  void read_scenario();
  void refuse_other_kind() const;
  void set_machine();
  void set_model();
  void plan_step();
  void plan_requests();

  const SweepSpace& space_;
  std::vector<std::size_t> order_;  // in which axes are set
  SweepCase point_;
  std::vector<std::uint64_t> positions_, wanted_;  // of each axis: where point_ is, where it is to be
  // What was set since point_ was planned. Whatever follows from nothing in there is right as it is.
  config::Sections changed_ = config::Sections::all();
  std::map<std::string, sim::Stack> stacks_;  // that points have asked for, by machine and name
};

}  // namespace dculab::study

// The tables and the JSON of `dculab simulate`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "present/study/simulation_fields.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/subject.hpp"
#include "present/values/verdict_text.hpp"
#include "study/answer/simulated_scenario.hpp"

namespace dculab::present {

struct ReportedSimulations {
  std::optional<std::vector<Part<Subject>>> subjects{};
  std::vector<Part<study::Simulation>> simulations{};
  std::optional<std::vector<std::vector<std::size_t>>> pareto{};
  std::optional<std::vector<std::size_t>> best{};
  std::optional<std::vector<ReportedBlockSizes>> block_sizes{};
  std::optional<ByMachine<MachineFacts>> machine_facts{};
  std::optional<ByMachine<std::vector<ReportedInputSensitivity>>> input_sensitivity{};
  std::vector<std::string> conclusion{};
};

// Of one scenario or several.
class SimulationReport {
 public:
  SimulationReport();

  // Of one point its latencies, of several a row each.
  void add(const study::SimulationQuestion& question, const study::SimulationAnswer& answer);
  [[nodiscard]] Report take();

 private:
  void add_choice(const study::SweepChoice& choice, const std::vector<study::Simulation>& all,
                  const config::Objective& objective);
  void add_front(const std::vector<std::size_t>& indices, const std::vector<study::Simulation>& all,
                 const config::Scenario& scenario);
  void add_input_sensitivities(const study::SimulationAnswer& answer);

  Report report_;
  ReportedSimulations told_;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedSimulations> {
  using Self = present::ReportedSimulations;
  static constexpr std::string_view id = "simulations";
  static constexpr std::string_view doc = "Requests of one scenario or several, served under a virtual clock.";
  static constexpr std::string_view csv_rows = "simulations";
  static constexpr auto fields = std::tuple(
      field("subjects", "what all figures of each scenario are about", &Self::subjects),
      field("simulations", "scenario by scenario and machine by machine, in the order of the sweeps",
            &Self::simulations),
      field("pareto", "of each scenario with pareto: indices of the simulations that no other beats in all aims",
            &Self::pareto),
      field("best", "of each scenario with an objective: the index of the simulation that it prefers", &Self::best),
      field("block_sizes", "which to take on each machine, where they are swept", &Self::block_sizes),
      field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
      field("leans_on", "assumed figures to which the steps are sensitive, by machine", &Self::input_sensitivity),
      field("conclusion", "the answers in sentences", &Self::conclusion));
};

}  // namespace dculab

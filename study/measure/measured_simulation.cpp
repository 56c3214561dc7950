#include "study/measure/measured_simulation.hpp"

#include <utility>

#include "study/evaluate/serving_figures.hpp"
#include "study/measure/measured_serving.hpp"

namespace dculab::study {

EngineMeter::EngineMeter(engine::OpTiming timing, engine::BenchProgress progress)
    : timing_(timing), progress_(std::move(progress)) {}

void EngineMeter::prepare(const config::Scenario& scenario, sim::SimulatedServer& server) const {
  make_measurable(server, scenario, "give --set machine=FILE with a calibrated file of this machine");
}

void EngineMeter::measure(const config::Scenario& scenario, const sim::SimulatedServer& server,
                          const RequestWorkload& workload, Simulation& done) const {
  MeasuredServing run = study::measure({.scenario = scenario,
                                        .options = server.options,
                                        .num_blocks = *server.num_blocks,
                                        .threads = server.machine.compute_units,
                                        .op_timing = timing_,
                                        .machine = &server.machine,
                                        .replicas = replicas_here(scenario, server.options, "--measure"),
                                        .progress = progress_},
                                       workload);
  done.trace = std::move(run.trace);
  done.measured = compared_figures(run.served.metrics, run.served.num_steps);
  if (server.few_heads) done.measured[kFewHeadsRequests] = static_cast<double>(run.served.head_sets.requests.back());
}

}  // namespace dculab::study

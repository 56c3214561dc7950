// Simulations whose requests this machine's engine serves as well.
#pragma once

#include "engine/measure/step_bench.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::study {

class EngineMeter : public ServingMeter {
 public:
  // `timing`: on: the trace knows the ops, and steps are a little slower.
  explicit EngineMeter(engine::OpTiming timing, engine::BenchProgress progress = {});

  void prepare(const config::Scenario& scenario, sim::SimulatedServer& server) const override;
  void measure(const config::Scenario& scenario, const sim::SimulatedServer& server, const RequestWorkload& workload,
               Simulation& done) const override;

 private:
  engine::OpTiming timing_;
  engine::BenchProgress progress_;
};

}  // namespace dculab::study

// A user predicts a decode step on a machine of their own.
#include <cstdio>

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"

int main() {
  dculab::sim::Machine machine;
  machine.name = "toy";
  machine.compute_units = 4;
  machine.peaks[dculab::Dtype::f32] = {dculab::FlopsPerSecond(5e11), {}};
  machine.peaks[dculab::Dtype::f16] = {dculab::FlopsPerSecond(1e12), {}};
  machine.memory = {{.name = "DRAM",
                     .size = 16 * dculab::kGiB,
                     .line = dculab::Bytes(64),
                     .bandwidth = dculab::BytesPerSecond(1e11),
                     .latency = 500 * dculab::kNanosecond}};
  dculab::ModelShape model{.name = "toy", .hidden_size = 256, .vocab_size = 1000, .max_position_embeddings = 1024};
  dculab::set_layers(model, 2, {.attention = dculab::Gqa{.heads = {4, 4, 64}}, .mlp = {1024}});
  const auto plan = dculab::plan_step(model, {}, dculab::uniform_batch(dculab::Phase::decode, 1, 100));
  const double seconds = dculab::sim::price_step(machine, plan).seconds.value();
  std::printf("%.3g s\n", seconds);
  return seconds > 0 ? 0 : 1;
}

// What tokens cost: energy and money of a deployment over the tokens that it answers with.
//
//   devices          = tensor x pipeline x replicas, those of both pools; of a CPU machine one a stage, as the devices
//                      that share a layer are its processes
//   J per token      = W of all devices / tokens per second
//   USD per million  = price of a device and hour * devices / (tokens per hour / 1e6)
//
// Idle devices count: they are paid for, and draw power.idle. The server around the devices has no energy here; a price
// has its part of it where it is that of a rented device.
#pragma once

#include <optional>

#include "core/step_plan.hpp"
#include "core/units.hpp"
#include "model/model_shape.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Devices with a power and a price of their own; those of one pool.
[[nodiscard]] double machines_of(const Machine& machine, const Deployment& deployment);
[[nodiscard]] double machines_of(const Machine& machine, const Deployment& deployment, ReplicaRole pool);

// A step on the devices that share every layer of it; of an expert-parallel replica, on those of one group with
// sequences of its own.
struct StepCost {
  double devices = 1;              // with a power and a price of their own
  std::optional<Joules> energy{};  // of all; where the machine's power is stated
  std::optional<double> usd{};     // for all; where its price is stated
};

// Of a step that was planned for `part`, which each device has of the model, and priced on `machine`.
[[nodiscard]] StepCost step_cost(const Machine& machine, const ModelShape& part, const StepPlan& plan,
                                 const StepPrice& price);

// Sequences that get a token by the step.
[[nodiscard]] double output_tokens(const Batch& batch);

// Of `devices` that cost `price_per_hour` each. Precondition: tokens_per_second > 0.
[[nodiscard]] double usd_per_million_tokens(double price_per_hour, double devices, double tokens_per_second);

// The same of a deployment; nothing where the machine has no price.
[[nodiscard]] std::optional<double> usd_per_million_tokens(const Machine& machine, const Deployment& deployment,
                                                           double tokens_per_second);

}  // namespace dculab::sim

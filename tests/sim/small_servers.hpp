// A small server, and requests for it, that several tests of serving start from.
#pragma once

#include "sim/serving/simulated_server.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"

namespace dculab::sim::test {

// 400 blocks of 16 tokens on each device, 16 sequences and 512 tokens a step.
inline SimulatedServer small_server(const Deployment& deployment = {}) {
  SimulatedServer server{mi50_like(), llama_2_7b(), {}, 400, deployment};
  server.options.max_num_seqs = 16;
  server.options.max_num_batched_tokens = 512;
  return server;
}

// Of a server of eight such devices.
inline SimulatedServer linked_server(const Deployment& deployment = {}) {
  SimulatedServer server = small_server(deployment);
  server.machine.peer_link = 30 * kGBs;
  server.machine.peer_latency = Seconds(2e-6);
  server.machine.peers = 7;
  return server;
}

// All at once.
inline RequestWorkload requests_of(int requests, int prompt, int output) {
  RequestWorkload workload{.requests = requests};
  workload.prompt.center = prompt;
  workload.output.center = output;
  return workload;
}

// At random times, prompts of 200 tokens.
inline RequestWorkload poisson_requests(int requests, double rate, int output = 40) {
  RequestWorkload workload = requests_of(requests, 200, output);
  workload.arrival = ArrivalKind::gamma;
  workload.requests_per_second = rate;
  return workload;
}

// 40 prompt and 24 output tokens on average, in bursts: 4 blocks of 16 a request.
inline RequestWorkload small_bursts(int requests, double rate) {
  RequestWorkload workload{.requests = requests, .arrival = ArrivalKind::gamma};
  workload.prompt = {LengthKind::uniform, 1, 0, 17, 72};
  workload.output = {LengthKind::uniform, 1, 0, 1, 47};
  workload.requests_per_second = rate;
  workload.burstiness = 0.2;
  workload.prefix_tokens = 16;
  workload.prefixes = 50;
  return workload;
}

}  // namespace dculab::sim::test

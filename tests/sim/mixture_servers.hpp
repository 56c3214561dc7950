// Nodes of eight devices that share the experts of a model, which several tests of serving start from.
#pragma once

#include "lower/flash_attention/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/latent_attention/kernels.hpp"
#include "tests/sim/mixtures.hpp"
#include "tests/sim/small_servers.hpp"

namespace dculab::sim::test {

[[nodiscard]] inline Machine node_of_eight() {
  Machine machine = hopper_like();
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) machine.peaks[dtype].matrix = 989 * kTflops;
  machine.stack.kernels.matmul = {&lower::gemm::kCublas};
  machine.stack.kernels.attention_prefill = {&lower::flash_attention::kFlashAttention3};
  machine.stack.kernels.attention_decode = {&lower::latent_attention::kFlashMla};
  machine.peers = 7;
  machine.direct_peers = 7;
  machine.peer_link = 200 * kGBs;
  machine.peer_latency = Seconds(1e-6);
  machine.network_link = 50 * kGBs;
  machine.network_latency = Seconds(3e-6);
  return machine;
}

[[nodiscard]] inline SimulatedServer mixture_server(const Deployment& deployment) {
  SimulatedServer server{node_of_eight(), deepseek_like(), {}, {}, deployment};
  server.options.weights = {Dtype::fp8_e4m3, 0};
  server.options.activation_dtype = Dtype::bf16;
  server.options.kv_cache_dtype = Dtype::bf16;
  server.options.block_size = 64;
  server.options.max_num_seqs = 32;
  server.options.max_num_batched_tokens = 2048;
  return server;
}

[[nodiscard]] inline Deployment over(int devices, int redundant = 0, int micro_batches = 1) {
  Deployment deployment;
  deployment.experts.size = devices;
  deployment.experts.num_redundant_experts = redundant;
  deployment.experts.micro_batches = micro_batches;
  return deployment;
}

[[nodiscard]] inline Deployment pools(int prefill, int decode) {
  Deployment deployment{.prefill_replicas = 1, .decode_replicas = 1};
  deployment.prefill = over(prefill, 32).of(ReplicaRole::both);
  deployment.decode = over(decode, 32).of(ReplicaRole::both);
  return deployment;
}

}  // namespace dculab::sim::test

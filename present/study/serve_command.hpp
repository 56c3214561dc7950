// How vLLM and SGLang are started with what `dculab recommend` answers. Names of options: vllm/engine/arg_utils.py,
// sglang/srt/server_args.py.
#pragma once

#include <string>
#include <vector>

#include "config/benchmarks/vllm_writer.hpp"
#include "study/decide/serving_recommendation.hpp"

namespace dculab::present {

// Of as many replicas as a server holds, of a mixture of experts of one. Empty where none of the program's kernels can
// be set so, or may lack the KV format. A KV cache that cannot hold the model's longest context gets max-model-len.
[[nodiscard]] config::ProgramOptions vllm_server_options(const study::Recommendation& recommendation);
[[nodiscard]] config::ProgramOptions sglang_server_options(const study::Recommendation& recommendation);

// "--block-size 16 --kv-cache-dtype fp8 --max-num-seqs 64 --max-num-batched-tokens 2048": the sizes and limits alone.
[[nodiscard]] std::string vllm_options(const study::Recommendation& recommendation);

// "vllm serve qwen3-32b --tensor-parallel-size 4 ...", or SGLang's where its stack was asked for; empty where neither
// can be set so, and where another program's stack was.
[[nodiscard]] std::string serve_command(const study::Recommendation& recommendation);

// What must be known beside the command: whose figures these are, which checkpoint, how often to start it. May be
// empty.
[[nodiscard]] std::string command_note(const study::Recommendation& recommendation);

// What `vllm bench sweep serve` should measure: the chosen setting, the same with each block size that cannot be told
// apart, and FleetChoice::rivals(). Throws InputError where none of vLLM's kernels can be set so.
[[nodiscard]] std::vector<config::ProgramOptions> serve_parameters(const study::Recommendation& recommendation);

// The load of one such command, for `vllm bench serve`.
[[nodiscard]] std::vector<config::ProgramOptions> bench_parameters(const study::Recommendation& recommendation);

}  // namespace dculab::present

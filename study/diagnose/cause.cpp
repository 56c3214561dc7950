#include "study/diagnose/cause.hpp"

#include <array>

#include "core/letter_case.hpp"

namespace dculab::study {
namespace {

struct Words {
  std::string_view name, meaning;
  std::string_view advice;       // for any program
  std::string_view with_vllm{};  // in its place
  std::string_view with_llama_cpp{};
};

// In the order of the enum.
constexpr std::array<Words, kCauses> kWords{{
    {"host_per_step", "the host takes long between two steps",
     "profile the host between steps (py-spy record -n); look for one busy core, and for CPU affinity and power "
     "governor",
     "compare --no-async-scheduling with the default; py-spy record on EngineCore; pin it to idle cores"},
    {"host_per_sequence", "the host takes long for each sequence: sampling, penalties, detokenizing",
     "measure with greedy sampling, without penalties, logprobs and structured output"},
    {"launches", "the host launches kernels one by one, slower than the device runs them",
     "run decode as a graph; trace one step and look for gaps between kernels",
     "remove --enforce-eager; look for 'Graph capturing finished' in the log; else trace a step with PyTorch's "
     "profiler and look for gaps",
     "build with GGML_CUDA_GRAPHS=ON; unset GGML_CUDA_DISABLE_GRAPHS"},
    {"slow_products",
     "products with 16-bit weights run far below what the device allows: no kernel for this device and so few rows",
     "time one product at this number of rows (rocprofv3 --kernel-trace, nsys); try another library or quantized "
     "weights, which have kernels of their own",
     "trace one step (rocprofv3 --kernel-trace or nsys); on AMD compare VLLM_ROCM_USE_SKINNY_GEMM=0 and 1; try a "
     "quantized checkpoint, which has kernels of its own"},
    {"slow_quantized_products",
     "products with quantized weights run far below what the device allows: a slow kernel for this format on this "
     "device",
     "measure the same model in 16 bits: if it is about as fast, the kernel of the format is slow; try another format",
     "look for the kernel in the log (gptq_marlin, exllama, awq ...); try --quantization gptq against the checkpoint "
     "in AWQ or compressed-tensors"},
    {"act_order",
     "GPTQ's act-order (desc_act): parts of a tensor-parallel product cannot be reordered, so a fallback kernel "
     "gathers scales row by row",
     "look for \"desc_act\": true in config.json; take a checkpoint without it, or pipeline in place of tensor "
     "parallelism",
     "look for \"desc_act\": true in config.json; take a checkpoint without it, or --pipeline-parallel-size in place "
     "of --tensor-parallel-size"},
    {"weights_widened",
     "weights are converted in memory in every step, and read again: the format or dtype has no kernel here",
     "choose a dtype that the device multiplies (f16 in place of bf16), or a format with a kernel of its own",
     "--dtype float16; look in the log for a dequantize fallback of the format"},
    {"weights_over_host_link", "weights lie in host memory and cross the host link in every step",
     "look at the device's memory use and link traffic while it decodes; give it a smaller model, more devices or a "
     "smaller format",
     "remove --cpu-offload-gb; look at rocm-smi --showmeminfo vram or nvidia-smi, and at link traffic while it "
     "decodes"},
    {"layers_on_host", "layers run on the host's CPU, from its memory",
     "look at the device's utilisation: it is idle most of a step",
     "look at the device's utilisation: it is idle most of a step",
     "-ngl 99: all layers on the device; its log says how many were offloaded"},
    {"low_clocks", "low clocks, a power cap, or another tenant on the device",
     "look at clocks, power and other processes during decode: rocm-smi --showclocks --showpids, hy-smi or nvidia-smi "
     "-q -d CLOCK,PERFORMANCE; then set the performance level to high"},
    {"kv_read_granularity",
     "attention reads KV in small pieces that wait for one another, with too few workgroups to hide it",
     "try another attention kernel: one that splits the context (flash-decoding) and shares KV heads; measure TPOT at "
     "two contexts again",
     "compare --attention-backend (TRITON_ATTN, ROCM_ATTN, FLASHINFER ...) and --block-size at two contexts",
     "-fa 1; measure llama-bench -d 0,4096"},
    {"kv_per_query_head", "attention reads the KV of a head once for each query head that shares it",
     "try an attention kernel that shares KV heads (GQA)", "compare --attention-backend at two contexts",
     "-fa 1; measure llama-bench -d 0,4096"},
    {"kv_copied", "the KV cache is copied, expanded or concatenated in every step",
     "trace one step and look for copies as large as the KV cache; use a static or paged cache"},
    {"no_kv_cache", "the whole context is computed anew for each token",
     "look for use_cache=False, cache=None or a prefix that changes with each token"},
    {"slow_attention", "attention of the prompt is slow: no flash attention for this device or head size",
     "measure two prompt lengths: its time grows with their square; try another attention kernel",
     "compare --attention-backend at two prompt lengths", "-fa 1"},
    {"scores_in_memory", "attention writes its scores to memory: no flash attention",
     "turn flash attention on; measure two prompt lengths", "compare --attention-backend at two prompt lengths",
     "-fa 1"},
    {"no_matrix_cores", "products of the prompt do not use the matrix cores",
     "trace one prefill and look at the names of the products' kernels; choose a dtype that the matrix cores multiply"},
    {"slow_exchange", "devices exchange results slowly: through host memory, or without peer access",
     "measure one device, or pipeline parallelism; all_reduce_perf of rccl-tests or nccl-tests; look at the topology",
     "measure --pipeline-parallel-size; NCCL_DEBUG=INFO and look for 'via SHM'; rocm-smi --showtopo or nvidia-smi topo "
     "-m; all_reduce_perf -b 8K -e 1M"},
    {"all_experts_read", "all experts are read and multiplied, not only those that tokens chose",
     "trace one step: the products of experts should take the time of the chosen ones; use a fused kernel of experts"},
    {"slow_experts", "products of experts run far below DRAM's bandwidth",
     "trace one step; tune the kernel's tiles for this device",
     "look for 'Using default MoE config' in the log; run benchmarks/kernels/benchmark_moe.py --tune for this device"},
    {"experts_one_by_one", "experts are launched one after the other",
     "use a fused kernel of experts; trace one step and count kernels"},
    {"fewer_sequences", "fewer sequences ran at a time than were asked for",
     "look at how many requests run: prompts that wait, preemptions, a client that sends one at a time",
     "look at 'Running: N reqs, Waiting: M' and at preemptions in the log; raise --max-num-seqs or "
     "--gpu-memory-utilization"},
    {"prefills_in_steps", "steps of decode also compute the prompts of other requests",
     "measure the median time between two tokens (ITL), which is that of a step of decode alone; send fewer requests "
     "per second to a server; give prompts a pool of their own",
     "--percentile-metrics ttft,tpot,itl: the median ITL is a step of decode alone; lower --max-num-batched-tokens, "
     "send fewer requests per second to a server, or give prompts a pool of their own (dculab recommend "
     "--decode-machine)"},
    {"drafts_rejected", "fewer drafted tokens are accepted than the prediction takes",
     "look at the acceptance rate in the program's metrics, and give it as workload's; draft fewer tokens",
     "look at vllm:spec_decode_num_accepted_tokens over num_draft_tokens; lower num_speculative_tokens"},
    {"slow_elementwise", "the small kernels between products are slow or many: unfused norms, activations, copies",
     "trace one step and add up what is neither product nor attention; compile or fuse it",
     "look for custom ops that fall back to native in the log; compare -O0 with the default"},
}};

[[nodiscard]] const Words& words(Cause cause) { return kWords[static_cast<std::size_t>(cause)]; }

}  // namespace

std::string_view name(Cause cause) { return words(cause).name; }
std::string_view meaning(Cause cause) { return words(cause).meaning; }

std::string what_to_try(Cause cause, const StepFacts& facts) {
  const std::string program = lower_case(facts.machine().stack.program);
  const Words& all = words(cause);
  if (program.starts_with("vllm") && !all.with_vllm.empty()) return std::string(all.with_vllm);
  if (program == "llama.cpp" && !all.with_llama_cpp.empty()) return std::string(all.with_llama_cpp);
  return std::string(all.advice);
}

}  // namespace dculab::study

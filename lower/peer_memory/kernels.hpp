// All-reduces whose kernels read and write the memory of the other devices, which must be one hop away.
//
//   vllm_custom_all_reduce   less than 8 MiB among 2, 4, 6 or 8 devices: vLLM 0.23, csrc/custom_all_reduce.cuh
//   torch_intra_node_comm    up to 10 MiB: PyTorch, csrc/distributed/c10d/symm_mem/intra_node_comm.cu
//   torch_symmetric_memory   larger ones of vLLM since 0.11 on Hopper, where the switch adds up between two copies:
//                            device_communicators/{symm_mem,all_reduce_utils}.py
//   tensorrt_llm_one_shot    NVIDIA/TensorRT-LLM@005b299 cpp/tensorrt_llm/common/customAllReduceUtils.h, a table by
//                            tokens and hidden size; in bytes as measured curves turn
//
// The first two know two ways. In one stage every device reads the values of all others: a barrier before, one after,
// and the values there and back. In two, each adds up a part, which the others read: its values there and back, and a
// flag of each device between the stages.
//
// Hops are fitted: to vLLM's kernels on H100, H200 and A100 in CUDA graphs (ai-dynamo/aiconfigurator@095f58a; one stage
// within 10 %, two within 15) and MI300X (vLLM 19744; within 5 %), and TensorRT-LLM's on H100 and H200 (within 10 %).
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::peer_memory {

extern const CollectiveKernel kVllmCustomAllReduce;
extern const CollectiveKernel kTorchIntraNodeComm;
extern const CollectiveKernel kTorchSymmetricMemory;
extern const CollectiveKernel kTensorrtLlmOneShot;

}  // namespace dculab::lower::peer_memory

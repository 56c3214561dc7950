// Products of a mixture of experts: one launch does those of all experts that get a row.
//
// An expert that gets a row has m / touched of them on average. Its product is cut into tiles like any product of that
// many rows; the launch has the tiles of all (how our own GPU kernels cut it: dculab_gpu/expert_product.hpp). No
// expert's product is split along k.
//
// Programs that multiply for all experts in one launch (ExpertKernel) cut tiles of one expert's rows. How many there
// are follows from the load: experts get different numbers of rows, and an expert's last tile is not full
// (core/expert_load.hpp). Padding is multiplied, and staged, but not loaded. The expert with the most rows bounds
// nothing beyond that: each of its tiles is a workgroup of its own, which goes through k as those of others do. Where
// devices share experts, the device with the most rows is the one that is priced (model/expert_shard.hpp).
//
//   workgroups   = tiles * columns of tiles, each in as many as k has parts
//   instructions = workgroups * k * (rows of a tile * per value + columns of a tile * (per value + per weight))
#pragma once

#include "core/op.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// The ordinary product that one touched expert does. Precondition: op.groups.count > 0.
[[nodiscard]] Op of_one_expert(const Op& op);

// Makes the launch of one expert's product that of all that are touched.
void extend_to_all_experts(const Op& op, Launch& launch);

// Fills in a launch that asks for each byte once. Precondition: op.groups.count > 0.
void lower_experts(const Op& op, const ExpertKernel& kernel, std::int64_t tokens, const Device& device, Launch& launch);

// The choice of experts, and the sort of rows by them, of a launch that is filled in as our own. One workgroup that
// sorts in its scratchpad counts each thread's choices, adds up an expert's counts over the threads, then all experts'
// counts, and counts the choices once more: each of them step by step.
void sort_by_expert(const Op& op, const ExpertKernel& kernel, Launch& launch);

}  // namespace dculab::lower

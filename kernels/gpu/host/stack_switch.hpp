// Leaves one stack in the middle of a function and goes on with another.
//
// On x86-64 by code of our own: it ends with a return, which the processor predicts, since fibres leave and come back
// through the same calls. Boost.Context ends with an indirect jump, after which the next return is predicted wrongly:
// 23 ns per switch against 5, 256 fibres in a ring on an EPYC. Elsewhere Boost.Context serves.
#pragma once

#include <cstddef>

namespace dculab::kernels::gpu::host {

// Where a stack was left.
using StackPlace = void*;

// The first switch to it calls enter_stack().
[[nodiscard]] StackPlace make_stack_place(std::byte* stack, std::size_t bytes);

// Goes on at `next`; comes back when someone switches to what `left` is set to.
void switch_stacks(StackPlace& left, StackPlace next, void* argument) __asm__("dculab_switch_stacks");

// What every stack starts with; never returns. `argument` is that of the first switch. Defined by who makes stacks.
void enter_stack(void* argument);

}  // namespace dculab::kernels::gpu::host

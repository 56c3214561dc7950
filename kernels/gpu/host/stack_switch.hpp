// Leaves one stack in the middle of a function and goes on with another.
//
// Boost.Context's own switch: its public fibre always comes back to who resumed it, while lanes hand over to the next
// lane directly.
#pragma once

#include <cstddef>

namespace dculab::kernels::gpu::host {

// Where a stack was left.
using StackPlace = void*;

// The first switch to it calls enter_stack().
[[nodiscard]] StackPlace make_stack_place(std::byte* stack, std::size_t bytes);

// Goes on at `next`; comes back when someone switches to what `left` is set to.
void switch_stacks(StackPlace& left, StackPlace next, void* argument);

// What every stack starts with; never returns. `argument` is that of the first switch. Defined by who makes stacks.
void enter_stack(void* argument);

}  // namespace dculab::kernels::gpu::host

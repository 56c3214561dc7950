#include "kernels/gpu/host/stack_switch.hpp"

#include <cstdint>

#if defined(__x86_64__)

// System V: rbx, rbp and r12 to r15 are the callee's to keep. The modes of floating point are not switched: kernels
// leave them alone. The argument is passed on for the first switch to a stack, which enters a function.
asm(R"(
.text
.globl dculab_switch_stacks
.type dculab_switch_stacks, @function
dculab_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  movq %rdx, %rdi
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dculab_switch_stacks, . - dculab_switch_stacks
)");

namespace dculab::kernels::gpu::host {

StackPlace make_stack_place(std::byte* stack, std::size_t bytes) {
  constexpr int kSavedRegisters = 6;
  auto* place = reinterpret_cast<std::uintptr_t*>(reinterpret_cast<std::uintptr_t>(stack + bytes) / 16 * 16);
  *--place = 0;  // where enter_stack would return to; also aligns its frame
  *--place = reinterpret_cast<std::uintptr_t>(&enter_stack);
  for (int i = 0; i < kSavedRegisters; ++i) *--place = 0;
  return place;
}

}  // namespace dculab::kernels::gpu::host

#else

#include <boost/context/detail/fcontext.hpp>

namespace dculab::kernels::gpu::host {
namespace {

using boost::context::detail::transfer_t;

struct Arrival {
  StackPlace* left;
  void* argument;
};

void arrive(transfer_t from) { *static_cast<Arrival*>(from.data)->left = from.fctx; }

void start(transfer_t from) {
  arrive(from);
  enter_stack(static_cast<Arrival*>(from.data)->argument);
}

}  // namespace

StackPlace make_stack_place(std::byte* stack, std::size_t bytes) {
  return boost::context::detail::make_fcontext(stack + bytes, bytes, start);
}

void switch_stacks(StackPlace& left, StackPlace next, void* argument) {
  Arrival arrival{&left, argument};
  arrive(boost::context::detail::jump_fcontext(next, &arrival));
}

}  // namespace dculab::kernels::gpu::host

#endif

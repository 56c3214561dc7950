#include "kernels/gpu/host/stack_switch.hpp"

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

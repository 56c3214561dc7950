// A stack of its own to run functions on, left and gone on with in the middle; AddressSanitizer is told.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/gpu/host/stack_switch.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace dculab::kernels::gpu::host {

class Fibre {
 public:
  // Stands for the stack that its owner runs on.
  Fibre() = default;
  // A stack that calls body(*this) again and again, from the first switch to it. `number` counts the fibres of a
  // thread: their stacks start at different places of a page, or they would share few sets of the caches.
  Fibre(int number, void (*body)(Fibre&));
  // Precondition of the destruction: nothing on its stack is left to be destroyed.
  Fibre(Fibre&&) = delete;

  // Goes on where `next` was left; returns when someone switches back. Precondition: this is the one that runs.
  void switch_to(Fibre& next) {
    next.came_from_ = this;
    void* fake_stack = nullptr;
    before_switch(&fake_stack, next);
    switch_stacks(place_, next.place_, &next);
    after_switch(fake_stack);
  }
  // The first thing that runs on the stack.
  [[noreturn]] void enter();

 private:
  void before_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const Fibre& next) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake_stack, next.bottom_, next.bytes_);
#endif
  }
  void after_switch([[maybe_unused]] void* fake_stack) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &came_from_->bottom_, &came_from_->bytes_);
#endif
  }

  StackPlace place_ = nullptr;  // where it was left
  Fibre* came_from_ = nullptr;
  void (*body_)(Fibre&) = nullptr;
  std::unique_ptr<std::byte[]> stack_;
  const void* bottom_ = nullptr;  // of the stack; its owner's own is known once it has been left
  std::size_t bytes_ = 0;
};

}  // namespace dculab::kernels::gpu::host

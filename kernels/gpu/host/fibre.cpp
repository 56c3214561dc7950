#include "kernels/gpu/host/fibre.hpp"

#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace dculab::kernels::gpu::host {
namespace {

// Kernels keep a few kilobytes; sanitized frames are several times larger.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 512 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

void before_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* stack,
                   [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, stack, size);
#endif
}

void after_switch([[maybe_unused]] void* saved, [[maybe_unused]] const void** stack,
                  [[maybe_unused]] std::size_t* size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(saved, stack, size);
#endif
}

}  // namespace

Fibre::Fibre(std::function<void()> body) : body_(std::move(body)) {
  boost::context::fixedsize_stack allocator(kStackBytes);
  boost::context::stack_context stack = allocator.allocate();
  inside_size_ = stack.size;
  inside_stack_ = static_cast<const char*>(stack.sp) - stack.size;
  inside_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                  allocator, [this](boost::context::fiber&& outside) {
                                    outside_ = std::move(outside);
                                    enter_inside();
                                    while (!stopping_) {
                                      in_body_ = true;
                                      body_();
                                      in_body_ = false;
                                      leave();
                                    }
                                    before_switch(nullptr, outside_stack_, outside_size_);
                                    return std::move(outside_);
                                  });
}

// A body that is left for good in the middle is unwound by the destructor of inside_.
Fibre::~Fibre() {
  stopping_ = true;
  if (!in_body_) resume();
}

void Fibre::enter_inside() { after_switch(nullptr, &outside_stack_, &outside_size_); }

void Fibre::resume() {
  void* saved = nullptr;
  before_switch(&saved, inside_stack_, inside_size_);
  inside_ = std::move(inside_).resume();
  after_switch(saved, nullptr, nullptr);
}

void Fibre::leave() {
  void* saved = nullptr;
  before_switch(&saved, outside_stack_, outside_size_);
  outside_ = std::move(outside_).resume();
  after_switch(saved, &outside_stack_, &outside_size_);
}

}  // namespace dculab::kernels::gpu::host

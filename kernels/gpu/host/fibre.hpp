// A function that can be left in the middle and resumed: Boost.Context, with what AddressSanitizer must be told.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace dculab::kernels::gpu::host {

class Fibre {
 public:
  // Runs `body` each time it is resumed after having finished.
  explicit Fibre(std::function<void()> body);
  Fibre(Fibre&&) = delete;
  ~Fibre();

  // Goes on inside until the body leaves or ends. Precondition: called from outside.
  void resume();
  // Back to who resumed. Precondition: called from inside.
  void leave();

 private:
  void enter_inside();

  std::function<void()> body_;
  bool in_body_ = false;
  bool stopping_ = false;
  boost::context::fiber inside_;
  boost::context::fiber outside_;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
  const void* inside_stack_ = nullptr;
  std::size_t inside_size_ = 0;
};

}  // namespace dculab::kernels::gpu::host

#include "kernels/gpu/host/fibre.hpp"

namespace dculab::kernels::gpu::host {
namespace {

// Kernels keep a few kilobytes; sanitized frames are several times larger.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 512 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

// From the start of one stack to the next: a page and five cache lines.
constexpr std::size_t kStackShift = 4096 + 5 * 64;
constexpr std::size_t kMostShift = kStackBytes / 2;

}  // namespace

Fibre::Fibre(int number, void (*body)(Fibre&))
    : body_(body),
      stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)),
      bottom_(stack_.get()),
      bytes_(kStackBytes - static_cast<std::size_t>(number) * kStackShift % kMostShift) {
  place_ = make_stack_place(stack_.get(), bytes_);
}

void Fibre::enter() {
  after_switch(nullptr);
  for (;;) body_(*this);
}

void enter_stack(void* fibre) { static_cast<Fibre*>(fibre)->enter(); }

}  // namespace dculab::kernels::gpu::host

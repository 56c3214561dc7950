#include "kernels/gpu/host/lanes.hpp"

#include <memory>
#include <utility>

namespace dculab::kernels::gpu::host {
namespace {

// Thrown inside a lane that waits while another has failed.
struct GivenUp {};

// Fibres of this thread, kept from launch to launch.
struct FibrePool {
  std::vector<std::unique_ptr<Fibre>> all;
  std::vector<Fibre*> idle;
};
thread_local FibrePool pool;
thread_local Lanes* lanes_of_thread = nullptr;

}  // namespace

Lanes::Lanes(int count, int wave_size, const std::function<void()>& body)
    : body_(body), lanes_(static_cast<std::size_t>(count)) {
  for (int i = 0; i < count; ++i) {
    Lane& lane = lanes_[static_cast<std::size_t>(i)];
    lane.index.thread = i;
    lane.wave = i / wave_size;
    lane.in_wave = i % wave_size;
  }
  lanes_of_thread = this;
}

Lanes::~Lanes() {
  unwind();
  lanes_of_thread = nullptr;
}

void Lanes::start_workgroup(int x, int y, int z) {
  for (Lane& lane : lanes_) {
    lane.index = {lane.index.thread, x, y, z};
    lane.has_left = false;
  }
}

void Lanes::take_turns(std::span<const int> turns) {
  turns_ = turns;
  if (Lane* const first = next()) outside_.switch_to(make_current(first));
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

Fibre& Lanes::take_idle_fibre() {
  if (pool.idle.empty()) {
    pool.all.push_back(std::make_unique<Fibre>(static_cast<int>(pool.all.size()), run_on));
    return *pool.all.back();
  }
  Fibre* const fibre = pool.idle.back();
  pool.idle.pop_back();
  return *fibre;
}

void Lanes::give_up() { throw GivenUp(); }

void Lanes::run_current(Fibre& fibre) {
  current_->fibre = &fibre;
  try {
    body_();
  } catch (const GivenUp&) {
  } catch (...) {
    failure_ = std::current_exception();
    turns_ = {};
  }
  current_->has_left = true;
  current_->fibre = nullptr;
}

// What a fibre does whenever it is switched to without a lane of its own: it starts lanes until one of them waits or
// none is left to be started.
void Lanes::run_on(Fibre& fibre) {
  Lanes& lanes = *lanes_of_thread;
  lanes.run_current(fibre);
  Lane* next = lanes.next();
  while (next != nullptr && next->fibre == nullptr) {
    lanes.current_ = next;
    running.lane = &next->index;
    lanes.run_current(fibre);
    next = lanes.next();
  }
  pool.idle.push_back(&fibre);
  fibre.switch_to(lanes.make_current(next));
}

void Lanes::unwind() {
  unwinding_ = true;
  turns_ = {};
  for (Lane& lane : lanes_)
    if (lane.fibre != nullptr) outside_.switch_to(make_current(&lane));
}

}  // namespace dculab::kernels::gpu::host

// The lanes of a workgroup and the fibres they run on: who runs, who comes next, and unwinding those that are given up.
//
// Two things keep turns cheap: a lane that waits switches straight to the next one, and a fibre whose lane has left
// starts the next lane itself, so that lanes that never wait run in a plain loop.
#pragma once

#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "kernels/gpu/host/fibre.hpp"
#include "kernels/gpu/host/workgroup.hpp"

namespace dculab::kernels::gpu::host {

struct Lane {
  LaneIndex index;
  int wave = 0;
  int in_wave = 0;
  bool has_left = false;
  Fibre* fibre = nullptr;  // null: not started, or left
};

class Lanes {
 public:
  Lanes(int count, int wave_size, const std::function<void()>& body);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes();

  void start_workgroup(int x, int y, int z);

  // Gives each lane that has not left one turn, in the order of `turns` (numbers of lanes). Throws what a lane throws.
  void take_turns(std::span<const int> turns);

  [[nodiscard]] const Lane& current() const { return *current_; }
  [[nodiscard]] const Lane& operator[](int i) const { return lanes_[static_cast<std::size_t>(i)]; }
  // Ends the current lane's turn; returns in its next one. Inline: each return after a switch is predicted wrongly.
  void end_turn() {
    Fibre& own = *current_->fibre;
    own.switch_to(make_current(next()));
    if (unwinding_) give_up();
  }

 private:
  static void run_on(Fibre& fibre);
  void run_current(Fibre& fibre);
  [[noreturn]] static void give_up();
  [[nodiscard]] static Fibre& take_idle_fibre();
  // Whose turn it is after the current lane's; null at the end of the turns.
  [[nodiscard]] Lane* next() {
    while (!turns_.empty()) {
      Lane& lane = lanes_[static_cast<std::size_t>(turns_.front())];
      turns_ = turns_.subspan(1);
      if (!lane.has_left) return &lane;
    }
    return nullptr;
  }
  // Returns the fibre to switch to for it.
  [[nodiscard]] Fibre& make_current(Lane* lane) {
    current_ = lane;
    if (lane == nullptr) return outside_;
    running.lane = &lane->index;
    if (lane->fibre == nullptr) lane->fibre = &take_idle_fibre();
    return *lane->fibre;
  }
  void unwind();

  const std::function<void()>& body_;
  std::vector<Lane> lanes_;
  std::span<const int> turns_;  // still to come
  Lane* current_ = nullptr;
  Fibre outside_;
  std::exception_ptr failure_;
  bool unwinding_ = false;
};

}  // namespace dculab::kernels::gpu::host

// The clock of an engine that really runs: steady, and started when the loop is.
#pragma once

#include <chrono>
#include <thread>

#include "core/serving_loop.hpp"

namespace dculab::engine {

class WallClock final : public Clock {
 public:
  [[nodiscard]] Seconds now() const override {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }
  void step_took(Seconds) override {}
  void wait_until(Seconds time) override {
    std::this_thread::sleep_for(std::chrono::duration<double>((time - now()).value()));
    woken_ = now();
  }

  // When the last wait ended; 0 before.
  [[nodiscard]] Seconds woken() const { return woken_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Seconds woken_;
};

}  // namespace dculab::engine

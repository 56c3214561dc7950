// A progress bar on the terminal; silent when standard error is not one.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "files/interruption.hpp"

namespace dculab::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws `label` and the share done, 0 to 1, at most ten times a second. A share below the last one begins anew: the
  // remaining time is that of what began then.
  void update(const std::string& label, double share);

  // The same, for work that reports how far it is.
  [[nodiscard]] std::function<void(const std::string& label, double share)> updates() {
    return [this](const std::string& label, double share) { update(label, share); };
  }

  // Removes the bar, so that the result starts on a clean line.
  void clear();

 private:
  std::atomic<bool> is_drawn_ = false;
  // Leaves a clean line also when the program is interrupted; empty where standard error is no terminal.
  std::optional<files::Undo> on_terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_drawn_;
  double share_ = 0;  // of the last update: smaller ones begin anew
};

}  // namespace dculab::cli

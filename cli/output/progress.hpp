// A progress bar on the terminal; silent when standard error is not one.
#pragma once

#include <chrono>
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

  // Draws `label` and the share done, 0 to 1, at most ten times a second.
  void update(const std::string& label, double share);

  // Removes the bar, so that the result starts on a clean line.
  void clear();

 private:
  bool is_terminal_;
  std::optional<files::Undo> drawn_;  // leaves a clean line also when the program is interrupted
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace dculab::cli

// The steps of a serving run as a timeline for chrome://tracing and ui.perfetto.dev.
//
// A step is a slice with its sizes; running, waiting and used KV blocks are counters. Times are in microseconds.
// Format: "Trace Event Format", Google; the JSON array form. Grows with the number of steps.
#pragma once

#include <string>

#include "core/serving_loop.hpp"

namespace dculab::config {

class ChromeTrace {
 public:
  // Engines that work beside each other have a process each, one after the other from 0.
  void add(const ServedStep& step, int engine = 0);

  // The file's content.
  [[nodiscard]] std::string json() const { return "[" + events_ + "\n]\n"; }

 private:
  void add_event(const std::string& event);

  std::string events_;
};

}  // namespace dculab::config

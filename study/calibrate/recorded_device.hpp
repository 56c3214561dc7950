// Whether traces were recorded on the machine that they are compared with, or that is fitted to them.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/machine.hpp"
#include "study/calibrate/measured_traces.hpp"

namespace dculab::study {

// A warning for each other device that the headers name: a CPU, the host that plays a GPU, a GPU of another
// architecture, or one with the name of another shipped machine. Devices without a name that is known give none.
[[nodiscard]] std::vector<std::string> other_devices(const std::vector<MeasuredTrace>& traces,
                                                     const sim::Machine& machine);

// Whether a benchmark's file was measured on something that the machine does not name: of the device's words with a
// digit ("8060S", "MI50") none is in the machine's name, description or architecture.
[[nodiscard]] bool is_unnamed(const std::string& device, const sim::Machine& machine);

// What to give instead, where a header names another device: "they were recorded on NVIDIA H200, which is not mi210:
// give --machine h200, or ...". Empty where none does.
[[nodiscard]] std::string advice_on_devices(const std::vector<MeasuredTrace>& traces, const sim::Machine& machine);

// The host that plays a GPU, by whose traces no machine is made: "host build, waves of 64". Empty where there is none.
[[nodiscard]] std::string emulated_device(const std::vector<MeasuredTrace>& traces);

}  // namespace dculab::study

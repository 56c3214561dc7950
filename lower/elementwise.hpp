// Ops that are neither products nor attention, value by value or row by row.
//
//   GPU  norms a workgroup a row, routers a wave a token, others 256 threads of 8 values each; rotating (not with
//        ALiBi) and caching are a kernel each, and so are choosing experts and sorting what they get
//   CPU  rows go to the threads in equal shares; groups of a KIVI cache that are complete are quantized value by value
#pragma once

#include "core/op.hpp"
#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// Fills in a launch that asks for each byte once.
void lower_elementwise(const Op& op, const Device& device, Launch& launch);

}  // namespace dculab::lower

// How fast a model decodes, with everything that its options do: measured on the engine as users run it.
#pragma once

#include "core/units.hpp"
#include "engine/generate/generator.hpp"

namespace dculab::engine {

struct DecodeSpeedOptions {
  int batch = 1;
  int context = 512;  // tokens of each sequence when the measurement begins
  int steps = 32;     // timed
};

// Median duration of the steps in which all sequences decode. Throws InputError when the sequences do not fit.
[[nodiscard]] Seconds median_decode_step(Generator& generator, const DecodeSpeedOptions& options);

}  // namespace dculab::engine

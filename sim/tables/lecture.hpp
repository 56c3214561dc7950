// The arithmetic intensities of the generative-inference lecture, as it prints them.
//
// L tokens (in decode: already cached), D model dimension, H head dimension; MHA, 4D MLP, FP16. The lecture counts
// one multiply-add as 1 and one FP16 element as 1; in FLOP and bytes both count 2, so the figures are FLOP/byte.
// Source: COMP6211J "Generative Inference Optimization", slides "Prefill Phrase" and "Decoding Phrase".
#pragma once

#include <cstdint>
#include <string_view>

#include "core/units.hpp"
#include "model/model_shape.hpp"

namespace dculab::sim {

enum class LectureFormula : std::uint8_t {
  none,               // the lecture gives none: "-"
  prefill_square,     // X W, W D x D
  prefill_attention,  // scores, values
  prefill_mlp,        // W D x 4D
  decode_square,
  decode_attention,
  decode_mlp,
};

// "LD/(2L+D)", ...; empty for none.
[[nodiscard]] std::string_view text(LectureFormula formula);

// Precondition: formula is not none.
[[nodiscard]] FlopsPerByte evaluate(LectureFormula formula, double L, double D, double H);

// The lecture's own case: MHA and a plain MLP of width 4D, at this model's D and number of heads, in all layers.
// Precondition: problems(model) is empty.
[[nodiscard]] ModelShape as_in_the_lecture(ModelShape model);

}  // namespace dculab::sim

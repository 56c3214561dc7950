// The arithmetic intensities of the generative-inference lecture, as it prints them.
//
// L tokens (in decode: already cached), D model dimension, H head dimension; MHA, 4D MLP, FP16. The lecture counts
// one multiply-add as 1 and one FP16 element as 1; in FLOP and bytes both count 2, so the figures are FLOP/byte.
// Source: COMP6211J "Generative Inference Optimization", slides "Prefill Phrase" and "Decoding Phrase".
#pragma once

#include <cstdint>
#include <string_view>

#include "core/units.hpp"

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

}  // namespace dculab::sim

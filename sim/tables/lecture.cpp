#include "sim/tables/lecture.hpp"

namespace dculab::sim {

std::string_view text(LectureFormula formula) {
  switch (formula) {
    case LectureFormula::none:
      return "";
    case LectureFormula::prefill_square:
      return "LD/(2L+D)";
    case LectureFormula::prefill_attention:
      return "LH/(2H+L)";
    case LectureFormula::prefill_mlp:
      return "4LD/(5L+4D)";
    case LectureFormula::decode_square:
      return "D/(2+D)";
    case LectureFormula::decode_attention:
      return "(H+LH)/(2H+L+LH+1)";
    case LectureFormula::decode_mlp:
      return "4D/(5+4D)";
  }
  return "";
}

FlopsPerByte evaluate(LectureFormula formula, double L, double D, double H) {
  switch (formula) {
    case LectureFormula::none:
      break;
    case LectureFormula::prefill_square:
      return FlopsPerByte(L * D / (2 * L + D));
    case LectureFormula::prefill_attention:
      return FlopsPerByte(L * H / (2 * H + L));
    case LectureFormula::prefill_mlp:
      return FlopsPerByte(4 * L * D / (5 * L + 4 * D));
    case LectureFormula::decode_square:
      return FlopsPerByte(D / (2 + D));
    case LectureFormula::decode_attention:
      return FlopsPerByte((H + L * H) / (2 * H + L + L * H + 1));
    case LectureFormula::decode_mlp:
      return FlopsPerByte(4 * D / (5 + 4 * D));
  }
  return {};
}

}  // namespace dculab::sim

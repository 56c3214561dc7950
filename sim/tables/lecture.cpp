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

ModelShape as_in_the_lecture(ModelShape model) {
  model.name += " as in the lecture (MHA, 4D MLP)";
  const int heads = model.heads().num_attention_heads;
  LayerKind layer = model.kinds.front();
  Gqa attention{.heads = {heads, heads, model.hidden_size / heads}};
  if (layer.has_kv_heads()) {
    attention.position = layer.gqa().position;
    attention.qkv_bias = layer.gqa().qkv_bias;
    attention.output_bias = layer.gqa().output_bias;
  }
  attention.position.rotary_dim = 0;
  layer.attention = attention;
  layer.experts.reset();
  model.kv_sources.clear();
  // The plain form of SiLU stands for the lecture's ReLU.
  layer.mlp = {4 * model.hidden_size, MlpKind::plain, ActivationKind::silu, layer.mlp.bias};
  set_layers(model, model.num_layers(), layer);
  return model;
}

}  // namespace dculab::sim

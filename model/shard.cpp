#include "model/shard.hpp"

#include <algorithm>

namespace dculab {

namespace {

// A matrix whose rows the devices share has whole groups on each of them.
void require_whole_groups(std::vector<std::string>& found, const char* matrix, int in_features, int group,
                          int devices) {
  if (group <= 0 || in_features % devices != 0 || in_features / devices % group == 0) return;
  found.push_back(std::string(matrix) + " has " + std::to_string(in_features / devices) + " in-features on each of " +
                  std::to_string(devices) + " devices, no whole groups of " + std::to_string(group) + " weights");
}

void check_kind(std::vector<std::string>& found, const ModelShape& model, const LayerKind& kind, WeightFormat layers,
                int devices) {
  const std::string over = " over " + std::to_string(devices) + " devices";
  const Heads& heads = kind.attention.heads;
  const int width = kind.mlp.intermediate_size;
  if (heads.num_attention_heads % devices != 0)
    found.push_back(std::to_string(heads.num_attention_heads) + " query heads do not divide" + over);
  if (heads.num_key_value_heads % devices != 0 && devices % heads.num_key_value_heads != 0)
    found.push_back(std::to_string(heads.num_key_value_heads) + " KV heads do not divide" + over);
  if (width % devices != 0) found.push_back("an MLP of width " + std::to_string(width) + " does not divide" + over);
  if (kind.attention.qk_norm == QkNorm::whole && devices > 1)
    found.push_back("norms of all of Q and of K need an exchange between " + std::to_string(devices) +
                    " devices that is not priced");
  if (kind.experts && kind.experts->intermediate_size % devices != 0)
    found.push_back("experts of width " + std::to_string(kind.experts->intermediate_size) + " do not divide" + over);
  const auto group_of = [&](WeightSlot slot) { return model.slot_format(slot, kind, layers).group_size; };
  require_whole_groups(found, "o_proj", heads.query_width(), group_of(WeightSlot::o_proj), devices);
  require_whole_groups(found, "down_proj", width, group_of(WeightSlot::down_proj), devices);
}

}  // namespace

std::vector<std::string> shard_problems(const ModelShape& model, WeightFormat layers, int devices) {
  std::vector<std::string> found;
  for (const LayerKind& kind : model.kinds) check_kind(found, model, kind, layers, devices);
  return found;
}

ModelShape shard(const ModelShape& model, int devices) {
  ModelShape part = model;
  part.tensor_parallel_size = devices;
  for (LayerKind& kind : part.kinds) {
    Heads& heads = kind.attention.heads;
    heads.num_attention_heads /= devices;
    heads.num_key_value_heads = std::max(1, heads.num_key_value_heads / devices);
    kind.mlp.intermediate_size /= devices;
    if (kind.experts) kind.experts->intermediate_size /= devices;
  }
  part.vocab_size = (model.vocab_size + devices - 1) / devices;
  return part;
}

}  // namespace dculab

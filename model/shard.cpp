#include "model/shard.hpp"

#include <algorithm>
#include <utility>

#include "core/allowed_numbers.hpp"

namespace dculab {

namespace {

// A matrix whose rows the devices share has whole groups on each of them.
void require_whole_groups(std::vector<std::string>& found, const char* matrix, int in_features, int group,
                          int devices) {
  if (group <= 0 || in_features % devices != 0 || in_features / devices % group == 0) return;
  found.push_back(std::string(matrix) + " has " + std::to_string(in_features / devices) + " in-features on each of " +
                  std::to_string(devices) + " devices, no whole groups of " + std::to_string(group) + " weights");
}

[[nodiscard]] std::string over(int devices) { return " over " + std::to_string(devices) + " devices"; }

void check_attention(std::vector<std::string>& found, const Gqa& attention, int devices) {
  const Heads& heads = attention.heads;
  if (!attention.group_sizes.empty())
    found.push_back("groups of different numbers of query heads do not divide" + over(devices));
  if (heads.num_attention_heads % devices != 0)
    found.push_back(std::to_string(heads.num_attention_heads) + " query heads do not divide" + over(devices));
  if (heads.num_key_value_heads % devices != 0 && devices % heads.num_key_value_heads != 0)
    found.push_back(std::to_string(heads.num_key_value_heads) + " KV heads do not divide" + over(devices));
}

void check_attention(std::vector<std::string>& found, const Mla& attention, int devices) {
  if (attention.num_attention_heads % devices != 0)
    found.push_back(std::to_string(attention.num_attention_heads) + " query heads do not divide" + over(devices));
}

void check_attention(std::vector<std::string>& found, const GatedDeltaNet& net, int devices) {
  if (net.num_key_heads % devices != 0 || net.num_value_heads % devices != 0)
    found.push_back(std::to_string(net.num_key_heads) + " key heads and " + std::to_string(net.num_value_heads) +
                    " value heads of the gated delta net do not divide" + over(devices));
}

void check_attention(std::vector<std::string>& found, const CompressedAttention& attention, int devices) {
  if (attention.num_attention_heads % devices != 0)
    found.push_back(std::to_string(attention.num_attention_heads) + " query heads do not divide" + over(devices));
  if (attention.o_groups % devices != 0)
    found.push_back(std::to_string(attention.o_groups) + " groups of heads (o_groups) do not divide" + over(devices));
}

// Every device has the latents or entries of all tokens, what gives them, and the whole indexer.
void divide(Gqa& attention, int devices) {
  attention.heads.num_attention_heads /= devices;
  attention.heads.num_key_value_heads = std::max(1, attention.heads.num_key_value_heads / devices);
}
void divide(Mla& attention, int devices) { attention.num_attention_heads /= devices; }
void divide(CompressedAttention& attention, int devices) {
  attention.num_attention_heads /= devices;
  attention.o_groups /= devices;
}
void divide(GatedDeltaNet& net, int devices) {
  net.num_key_heads /= devices;
  net.num_value_heads /= devices;
}

// Values of a token that go into o_proj.
[[nodiscard]] int output_width(const Gqa& attention) { return attention.heads.query_width(); }
[[nodiscard]] int output_width(const Mla& attention) { return attention.value_width(); }
[[nodiscard]] int output_width(const GatedDeltaNet& net) { return net.value_width(); }
[[nodiscard]] int output_width(const CompressedAttention& attention) { return attention.output_latents(); }

// Of experts in MXFP4: whole groups, and some for every device.
void check_groups(std::vector<std::string>& found, int width, int group, int devices) {
  if (devices == 1) return;
  const int groups = width / group, most = (groups + devices - 1) / devices;
  if (width % group != 0)
    found.push_back("experts of width " + std::to_string(width) + " do not make whole groups of " +
                    std::to_string(group) + " weights");
  else if ((devices - 1) * most >= groups)
    found.push_back("the " + std::to_string(groups) + " groups of experts in mxfp4 leave some of " +
                    std::to_string(devices) + " devices without any");
}

void check_kind(std::vector<std::string>& found, const ModelShape& model, const LayerKind& kind, WeightFormat layers,
                int devices) {
  const int width = kind.mlp.intermediate_size;
  std::visit([&](const auto& attention) { check_attention(found, attention, devices); }, kind.attention);
  if (width % devices != 0)
    found.push_back("an MLP of width " + std::to_string(width) + " does not divide" + over(devices));
  const auto group_of = [&](WeightSlot slot) { return model.slot_format(slot, kind, layers).group_size; };
  const int outputs = std::visit([](const auto& attention) { return output_width(attention); }, kind.attention);
  require_whole_groups(found, "o_proj", outputs, group_of(WeightSlot::o_proj), devices);
  require_whole_groups(found, "down_proj", width, group_of(WeightSlot::down_proj), devices);
  if (!kind.experts) return;
  if (const WeightFormat experts = model.slot_format(WeightSlot::expert_down_proj, kind, layers);
      experts.dtype == Dtype::mxfp4)
    return check_groups(found, kind.experts->intermediate_size, experts.group_size, devices);
  if (kind.experts->intermediate_size % devices != 0)
    found.push_back("experts of width " + std::to_string(kind.experts->intermediate_size) + " do not divide" +
                    over(devices));
  require_whole_groups(found, "experts' down_proj", kind.experts->intermediate_size,
                       group_of(WeightSlot::expert_down_proj), devices);
}

// A problem that several kinds of layers have stands once.
[[nodiscard]] std::vector<std::string> problems_over(const ModelShape& model, WeightFormat layers, int devices) {
  std::vector<std::string> found, once;
  for (const LayerKind& kind : model.kinds) check_kind(found, model, kind, layers, devices);
  for (std::string& problem : found)
    if (std::ranges::find(once, problem) == once.end()) once.push_back(std::move(problem));
  return once;
}

// How much of the experts' width the first device has.
[[nodiscard]] int share_of_width(int width, WeightFormat experts, int devices) {
  if (experts.dtype != Dtype::mxfp4 || devices == 1) return width / devices;
  const int groups = width / experts.group_size;
  return (groups + devices - 1) / devices * experts.group_size;
}

// "1, 2 or 4": over how many devices the model can be divided.
[[nodiscard]] std::string numbers_of_devices(const ModelShape& model, WeightFormat layers) {
  constexpr int kMostDevices = 256;
  std::vector<int> numbers{1};
  for (int devices = 2; devices <= kMostDevices; ++devices)
    if (problems_over(model, layers, devices).empty()) numbers.push_back(devices);
  return one_of(numbers);
}

}  // namespace

std::vector<std::string> shard_problems(const ModelShape& model, WeightFormat layers, int devices) {
  std::vector<std::string> found = problems_over(model, layers, devices);
  if (!found.empty()) found.back() += "; use " + numbers_of_devices(model, layers);
  return found;
}

ModelShape shard(const ModelShape& model, WeightFormat layers, int devices) {
  ModelShape part = model;
  part.tensor_parallel_size = devices;
  for (LayerKind& kind : part.kinds) {
    if (kind.experts)
      kind.experts->intermediate_size = share_of_width(
          kind.experts->intermediate_size, model.slot_format(WeightSlot::expert_down_proj, kind, layers), devices);
    std::visit([devices](auto& attention) { divide(attention, devices); }, kind.attention);
    kind.mlp.intermediate_size /= devices;
  }
  part.vocab_size = (model.vocab_size + devices - 1) / devices;
  return part;
}

}  // namespace dculab

#include "config/options_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "config/step_words.hpp"
#include "core/kv/figures.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr double kLargestZipfExponent = 16;  // the first expert gets all but one choice in 65,000
constexpr auto kBatchings =
    std::to_array<Choice<Batching>>({{"continuous", Batching::continuous}, {"static", Batching::per_batch}});
constexpr auto kPreemptionModes =
    std::to_array<Choice<PreemptionMode>>({{"recompute", PreemptionMode::recompute}, {"swap", PreemptionMode::swap}});
constexpr auto kPrefixEvictions =
    std::to_array<Choice<PrefixEviction>>({{"lru", PrefixEviction::lru}, {"lfu", PrefixEviction::lfu}});

// A figure that is missing, or stands there for nothing, is reported where the policy is chosen.
void read_retention(MapReader& reader, KvRetention& retention) {
  reader.optional("retention", retention.policy, kRetentionPolicies);
  for (const KvFigure& figure : kKvFigures) {
    if (figure.share != nullptr)
      reader.optional(figure.name, retention.*figure.share, fraction());
    else
      reader.optional(figure.name, retention.*figure.count, between(1, kLongestContext));
  }
}

// A word, or a list of them.
void read_skip(MapReader& reader, KvSkip& skip) {
  const Node* node = reader.optional("skip");
  if (node == nullptr) return;
  skip = {};
  std::vector<std::string> words;
  if (node->kind == NodeKind::scalar)
    words.push_back(node->text);
  else
    reader.read(*node, words);
  for (const std::string& word : words)
    if (!add_word(skip, word))
      reader.complain(*node, "kv_cache.skip: " + in_quotes(word) + " cannot be skipped; use " + kKvSkipWords +
                                 ", or a list of them");
  if (words.size() > 1 && std::ranges::find(words, "none") != words.end())
    reader.complain(*node, "kv_cache.skip: 'none' stands alone; leave it out, or the other words");
}

void read_kv_cache(MapReader reader, EngineOptions& options) {
  read_retention(reader, options.kv_retention);
  read_skip(reader, options.kv_skip);
  const Node* dtype = reader.optional("dtype");
  reader.optional("dtype", options.kv_cache_dtype);
  if (dtype != nullptr && !is_kv_format(options.kv_cache_dtype))
    reader.complain(*dtype, "kv_cache.dtype: " + in_quotes(dtype->text) + " is no format of a KV cache; use one of " +
                                kv_format_names());
  reader.optional("block_size", options.block_size, between(1, 256));
  const Node* block_size = reader.optional("block_size");
  if (block_size != nullptr && !std::has_single_bit(static_cast<unsigned>(options.block_size)))
    reader.complain(*block_size, "kv_cache.block_size: " + in_quotes(block_size->text) + " is not a power of two");
  reader.optional("residual_tokens", options.kv_residual_tokens, between(32, 128));
  const Node* residual = reader.optional("residual_tokens");
  if (residual != nullptr && options.kv_residual_tokens % 32 != 0)
    reader.complain(*residual, "kv_cache.residual_tokens: " + in_quotes(residual->text) + " is not a multiple of 32");
  reader.finish();
}

constexpr auto kLatentForms =
    std::to_array<Choice<LatentForm>>({{"expand", LatentForm::expand}, {"absorb", LatentForm::absorb}});

void read_attention(MapReader attention, EngineOptions& options) {
  AttentionSplit& split = options.attention_split;
  const Node* heads = attention.optional("query_heads_per_workgroup");
  if (heads != nullptr && heads->text == "group") split.query_heads_per_workgroup = 0;
  if (heads != nullptr && heads->text != "group")
    attention.read(*heads, split.query_heads_per_workgroup, between(1, 1024));
  attention.optional("partition_tokens", split.partition_tokens, between(0, kLongestContext));
  attention.optional("prefill_latents", options.prefill_latents, kLatentForms);
  attention.optional("decode_latents", options.decode_latents, kLatentForms);
  attention.finish();
}

void read_engine(MapReader reader, EngineOptions& options, SpeculationChoice& speculation, FewHeadsChoice& few_heads) {
  reader.optional("max_num_seqs", options.max_num_seqs, between(1, kLargestBatch));
  reader.optional("max_num_batched_tokens", options.max_num_batched_tokens, between(1, kLongestContext));
  reader.optional("enable_chunked_prefill", options.enable_chunked_prefill);
  reader.optional("batching", options.batching, kBatchings);
  reader.optional("enable_prefix_caching", options.enable_prefix_caching);
  reader.optional("prefix_eviction", options.prefix_eviction, kPrefixEvictions);
  reader.optional("gpu_memory_utilization", options.gpu_memory_utilization, fraction());
  reader.optional("preemption_mode", options.preemption_mode, kPreemptionModes);
  reader.optional("swap_space", options.swap_space, between(0, kLargestSwapSpace.value()));
  reader.optional("activation_dtype", options.activation_dtype);
  read_speculative_config(reader.optional_map("speculative_config"), options.speculative_config, speculation);
  read_groups_by_load(reader.optional_map("groups_by_load"), options.groups_by_load, few_heads);
  reader.finish();
}

// Which experts tokens choose: all alike, by Zipf's law, or as a run has counted.
void read_experts(MapReader reader, ExpertLoad& load) {
  const Node* exponent = reader.optional("zipf_exponent");
  if (exponent != nullptr) reader.read(*exponent, load.zipf_exponent, between(0, kLargestZipfExponent));
  const Node* histogram = reader.optional("histogram");
  if (histogram != nullptr) reader.read(*histogram, load.histogram, at_least(0));
  if (histogram != nullptr && exponent != nullptr)
    reader.complain(*histogram, "experts: zipf_exponent and histogram exclude each other");
  reader.finish();
}

}  // namespace

void read_engine_sections(MapReader& reader, EngineOptions& options, SpeculationChoice& speculation,
                          FewHeadsChoice& few_heads) {
  reader.optional("activations", options.activations, kActivationModes);
  read_kv_cache(reader.optional_map("kv_cache"), options);
  read_attention(reader.optional_map("attention"), options);
  read_experts(reader.optional_map("experts"), options.expert_load);
  read_engine(reader.optional_map("engine"), options, speculation, few_heads);
}

void read_options(const Node& document, EngineOptions& options, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  SpeculationChoice speculation;
  FewHeadsChoice few_heads;
  read_engine_sections(reader, options, speculation, few_heads);
}

}  // namespace dculab::config

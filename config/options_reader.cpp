#include "config/options_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "config/key_description.hpp"
#include "config/step_words.hpp"
#include "core/allowed_numbers.hpp"
#include "core/kv/figures.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr double kLargestZipfExponent = 16;  // the first expert gets all but one choice in 65,000
constexpr Bounds kQueryHeads = between(1, 1024);
constexpr auto kBatchings =
    std::to_array<Choice<Batching>>({{"continuous", Batching::continuous}, {"static", Batching::per_batch}});
constexpr auto kPreemptionModes =
    std::to_array<Choice<PreemptionMode>>({{"recompute", PreemptionMode::recompute}, {"swap", PreemptionMode::swap}});
constexpr auto kPrefixEvictions =
    std::to_array<Choice<PrefixEviction>>({{"lru", PrefixEviction::lru}, {"lfu", PrefixEviction::lfu}});

// The figures of policies. One that is missing, or stands there for nothing, is reported where the policy is chosen.
template <std::size_t Index>
constexpr auto kv_figure_key() {
  constexpr const KvFigure& kFigure = kKvFigures[Index];
  constexpr KvRetention kNone;
  if constexpr (kFigure.share != nullptr)
    return value(kFigure.name,
                 [](EngineOptions & options) -> auto& { return options.kv_retention.*kKvFigures[Index].share; },
                 kFigure.meaning, {.bounds = fraction(), .unit = unit::share, .absent = "needed"});
  else
    return value(kFigure.name,
                 [](EngineOptions & options) -> auto& { return options.kv_retention.*kKvFigures[Index].count; },
                 kFigure.meaning,
                 {.bounds = between(1, kLongestContext),
                  .unit = kFigure.name.ends_with("blocks") ? "blocks" : unit::tokens,
                  .absent = kNone.*kFigure.count == 0 ? "0" : ""});
}

template <std::size_t... Index>
constexpr auto kv_figure_keys(std::index_sequence<Index...>) {
  return std::tuple(kv_figure_key<Index>()...);
}

// A word, or a list of them.
void read_skip(MapReader& reader, const Node& node, EngineOptions& options) {
  KvSkip& skip = options.kv_skip = {};
  std::vector<std::string> words;
  if (node.kind == NodeKind::scalar)
    words.push_back(node.text);
  else
    reader.read(node, words);
  for (const std::string& word : words)
    if (!add_word(skip, word))
      reader.complain(node, "kv_cache.skip: " + in_quotes(word) + " cannot be skipped; use " + kKvSkipWords +
                                ", or a list of them");
  if (words.size() > 1 && std::ranges::find(words, "none") != words.end())
    reader.complain(node, "kv_cache.skip: 'none' stands alone; leave it out, or the other words");
}

// Also in vLLM's words, as the options take it.
void read_kv_dtype(MapReader& reader, const Node& node, EngineOptions& options) {
  Node format = node;
  if (format.kind == NodeKind::scalar) format.text = kv_format_word(node.text);
  reader.read(format, options.kv_cache_dtype);
}

[[nodiscard]] std::vector<std::string> kv_dtype_words() {
  std::vector<std::string> words = dtype_words();
  words.emplace_back(kKvAuto);
  return words;
}

struct KvCacheKeys {
  using Target = EngineOptions;
  static constexpr auto keys = std::tuple_cat(
      std::tuple(
          shaped("dtype", read_kv_dtype, {.words = {.names = kv_dtype_words}}, "format of K and V; `auto` is `f16`",
                 {.absent = "`f16`"}),
          value("residual_tokens", &EngineOptions::kv_residual_tokens,
                "with `kivi4`, `kivi2`: newest tokens that stay in F16; a multiple of 32",
                {.bounds = between(32, 128), .unit = unit::tokens}),
          value("block_size", &EngineOptions::block_size, "tokens per KV block, a power of two",
                {.bounds = between(1, 256), .unit = unit::tokens}),
          word(
              "retention", [](EngineOptions& options) -> auto& { return options.kv_retention.policy; },
              kRetentionPolicies, "which tokens stay in the cache, or are loaded"),
          shaped("skip", read_skip,
                 {.words = one_of("none", "padding", "duplicate_prompts", "all"), .may_be_list = true},
                 "prompt tokens that are not written to the cache; no effect on a single step", {.absent = "`none`"})),
      kv_figure_keys(std::make_index_sequence<kKvFigures.size()>{}));

  static void check(MapReader& reader, EngineOptions& options) {
    const Node *dtype = reader.optional("dtype"), *block_size = reader.optional("block_size"),
               *residual = reader.optional("residual_tokens");
    if (dtype != nullptr && !is_kv_format(options.kv_cache_dtype))
      reader.complain(*dtype, "kv_cache.dtype: " + in_quotes(dtype->text) + " is no format of a KV cache; use one of " +
                                  kv_format_names());
    if (block_size != nullptr && !std::has_single_bit(static_cast<unsigned>(options.block_size)))
      reader.complain(*block_size, "kv_cache.block_size: " + in_quotes(block_size->text) +
                                       " is not a power of two; use " + powers_of_two(1, 256));
    if (residual != nullptr && options.kv_residual_tokens % 32 != 0)
      reader.complain(*residual, "kv_cache.residual_tokens: " + in_quotes(residual->text) +
                                     " is not a multiple of 32; use 32, 64, 96 or 128");
  }
};

constexpr auto kLatentForms =
    std::to_array<Choice<LatentForm>>({{"expand", LatentForm::expand}, {"absorb", LatentForm::absorb}});

void read_query_heads(MapReader& reader, const Node& node, EngineOptions& options) {
  int& heads = options.attention_split.query_heads_per_workgroup;
  if (node.text == "group")
    heads = 0;
  else
    reader.read(node, heads, kQueryHeads);
}

struct AttentionKeys {
  using Target = EngineOptions;
  static constexpr auto keys =
      std::tuple(shaped("query_heads_per_workgroup", read_query_heads, {.is_whole = true, .words = one_of("group")},
                        "query heads that share one load of a KV block",
                        {.bounds = kQueryHeads, .unit = "heads", .absent = "`group`"}),
                 value("partition_tokens",
                       [](EngineOptions& options) -> auto& { return options.attention_split.partition_tokens; },
                       "context that one decode workgroup processes; 0 = never split",
                       {.bounds = between(0, kLongestContext), .unit = unit::tokens}),
                 word("prefill_latents", &EngineOptions::prefill_latents, kLatentForms,
                      "MLA: expand latents to K and V of every head, or compute attention over the latents"),
                 word("decode_latents", &EngineOptions::decode_latents, kLatentForms, "the same for decodes"));
};

// Which experts tokens choose: all alike, by Zipf's law, or as a run has counted.
struct ExpertsKeys {
  using Target = ExpertLoad;
  static constexpr auto keys =
      std::tuple(value("zipf_exponent", &ExpertLoad::zipf_exponent,
                       "mixtures: the share of tokens that an expert gets falls as its rank to the power of minus "
                       "this; 0 = all equal",
                       {.bounds = between(0, kLargestZipfExponent)}),
                 value("histogram", &ExpertLoad::histogram,
                       "instead: how often a run chose each expert (`bench`, `evaluate`: JSON `experts`)",
                       {.bounds = at_least(0), .unit = unit::count}));

  static void check(MapReader& reader, ExpertLoad&) {
    const Node* histogram = reader.optional("histogram");
    if (histogram != nullptr && reader.optional("zipf_exponent") != nullptr)
      reader.complain(*histogram, "experts: zipf_exponent and histogram exclude each other");
  }
};

struct EngineKeys {
  using Target = EngineOptions;
  static constexpr auto keys =
      std::tuple(value("max_num_seqs", &EngineOptions::max_num_seqs, "sequences in a step, at most",
                       {.bounds = between(1, kLargestBatch), .unit = "sequences"}),
                 value("max_num_batched_tokens", &EngineOptions::max_num_batched_tokens,
                       "new tokens in a step, at most", {.bounds = between(1, kLongestContext), .unit = unit::tokens}),
                 value("enable_chunked_prefill", &EngineOptions::enable_chunked_prefill,
                       "a prompt may be computed over several steps"),
                 word("batching", &EngineOptions::batching, kBatchings,
                      "`static`: no request joins before the whole batch has ended"),
                 value("enable_prefix_caching", &EngineOptions::enable_prefix_caching,
                       "prompts with the same beginning share blocks; no effect on a single step"),
                 word("prefix_eviction", &EngineOptions::prefix_eviction, kPrefixEvictions,
                      "which unused blocks are evicted first"),
                 value("gpu_memory_utilization", &EngineOptions::gpu_memory_utilization,
                       "of memory, for weights and KV", {.bounds = fraction(), .unit = unit::share}),
                 word("preemption_mode", &EngineOptions::preemption_mode, kPreemptionModes,
                      "`swap`: a preempted sequence's KV blocks go to host memory and back"),
                 value("swap_space", &EngineOptions::swap_space, "host memory for that, for each device",
                       {.bounds = between(0, kLargestSwapSpace.value())}),
                 value("activation_dtype", &EngineOptions::activation_dtype, "of activations between kernels",
                       {.absent = "`f16` on a GPU, `f32` on a CPU"}));
};

struct ActivationsKeys {
  using Target = EngineOptions;
  static constexpr auto keys = std::tuple(word(
      "activations", &EngineOptions::activations, kActivationModes,
      "`int8`: matmuls with grouped weights round activations to 8 bits and multiply integers; `bf16`: those with "
      "BF16 weights round them to BF16; `fp8`: those with FP8 weights round them to FP8, predicted only",
      {.absent = "`exact`; with other programs' stacks as the checkpoint asks, if the device has that arithmetic"}));
};

void read_engine(MapReader reader, EngineOptions& options, SpeculationChoice& speculation, FewHeadsChoice& few_heads) {
  read_keys<EngineKeys>(reader, options);
  read_speculative_config(reader.optional_map("speculative_config"), options.speculative_config, speculation);
  read_groups_by_load(reader.optional_map("groups_by_load"), options.groups_by_load, few_heads);
  reader.finish();
}

}  // namespace

void read_engine_sections(MapReader& reader, EngineOptions& options, SpeculationChoice& speculation,
                          FewHeadsChoice& few_heads) {
  read_keys<ActivationsKeys>(reader, options);
  read_section<KvCacheKeys>(reader.optional_map("kv_cache"), options);
  read_section<AttentionKeys>(reader.optional_map("attention"), options);
  read_section<ExpertsKeys>(reader.optional_map("experts"), options.expert_load);
  read_engine(reader.optional_map("engine"), options, speculation, few_heads);
}

std::vector<FileKey> engine_section_keys() {
  std::vector<FileKey> engine = keys_of<EngineKeys>();
  engine.push_back(map_key("speculative_config", "drafts that decode steps verify", speculative_config_keys()));
  engine.push_back(map_key("groups_by_load", "a second set of KV heads, for requests that arrive under load",
                           groups_by_load_keys()));
  std::vector<FileKey> all = keys_of<ActivationsKeys>();
  all.push_back(map_key("kv_cache", "how K and V are kept", keys_of<KvCacheKeys>()));
  all.push_back(map_key("attention", "how attention is computed", keys_of<AttentionKeys>()));
  all.push_back(map_key("experts", "which experts tokens choose", keys_of<ExpertsKeys>()));
  all.push_back(map_key("engine", "vLLM's options of the engine", std::move(engine)));
  return all;
}

void read_options(const Node& document, EngineOptions& options, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  SpeculationChoice speculation;
  FewHeadsChoice few_heads;
  read_engine_sections(reader, options, speculation, few_heads);
}

}  // namespace dculab::config

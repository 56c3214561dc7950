#include "config/workload_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "config/key_description.hpp"
#include "config/step_words.hpp"

namespace dculab::config {
namespace {

constexpr auto kKvPaddings =
    std::to_array<Choice<KvPadding>>({{"none", KvPadding::none}, {"longest", KvPadding::longest}});

struct StepKeys {
  using Target = Workload;
  static constexpr auto keys =
      std::tuple(word("phase", &Workload::phase, kPhases, "phase of a single step"),
                 value("batch", &Workload::batch, "sequences in the step",
                       {.bounds = between(1, kLargestBatch), .unit = "sequences"}),
                 value("context_tokens", &Workload::context_tokens, "tokens of each sequence after the step",
                       {.bounds = between(1, kLongestContext), .unit = unit::tokens}),
                 value("cached_tokens", &Workload::cached_tokens,
                       "prefill only: length of a prefix of each sequence that is already in the cache",
                       {.bounds = between(0, kLongestContext), .unit = unit::tokens}));

  static void check(MapReader& reader, Workload& workload) {
    const Node* cached = reader.optional("cached_tokens");
    if (cached == nullptr) return;
    if (workload.phase == Phase::decode)
      reader.complain(*cached,
                      "workload.cached_tokens: a decode has all but one token in the cache; set phase: prefill");
    else if (workload.cached_tokens >= workload.context_tokens)
      reader.complain(*cached, "workload.cached_tokens: must be below context_tokens: one token at least is computed");
  }
};

constexpr auto kLengthKinds = std::to_array<Choice<LengthKind>>(
    {{"uniform", LengthKind::uniform}, {"exponential", LengthKind::exponential}, {"lognormal", LengthKind::lognormal}});

struct LengthKeys {
  using Target = LengthDistribution;
  static constexpr KeyTraits kLength{.bounds = between(1, kLongestContext), .unit = unit::tokens};
  static constexpr KeyTraits kCenter{
      .bounds = kLength.bounds, .unit = unit::tokens, .absent = "needed by its distribution"};
  static constexpr auto keys =
      std::tuple(word("distribution", &LengthDistribution::kind, kLengthKinds,
                      "`uniform` needs `max`, `exponential` `mean`, `lognormal` `median` and `sigma`",
                      {.necessity = Necessity::required}),
                 value("min", &LengthDistribution::least, "shorter ones are drawn as this", kLength),
                 value("max", &LengthDistribution::most, "longer ones are drawn as this",
                       {.bounds = kLength.bounds, .unit = unit::tokens, .absent = "the model's context"}),
                 value("mean", &LengthDistribution::center, "of `exponential`", kCenter),
                 value("median", &LengthDistribution::center, "of `lognormal`", kCenter),
                 value("sigma", &LengthDistribution::sigma, "of `lognormal`: of the logarithm",
                       {.bounds = between(0, 10), .absent = "needed by its distribution"}));
};

// What a distribution needs.
void require_keys(MapReader& fields, LengthKind kind) {
  const auto require = [&](LengthKind needing, std::string_view key) {
    if (kind == needing) static_cast<void>(fields.required(key));
  };
  require(LengthKind::uniform, "max");
  require(LengthKind::exponential, "mean");
  require(LengthKind::lognormal, "median");
  require(LengthKind::lognormal, "sigma");
}

// A number, or {distribution: lognormal, median: 400, sigma: 0.9, max: 2048}.
void read_lengths(MapReader& reader, const Node& node, LengthDistribution& lengths) {
  if (node.kind != NodeKind::map) {
    int length = 1;
    reader.read(node, length, LengthKeys::kLength.bounds);
    lengths.center = length;
    return;
  }
  MapReader fields(&node, reader.path_to(node.key), reader.problems());
  read_key<LengthKeys>(fields, "distribution", lengths);
  const auto has = [&](LengthKind kind) { return lengths.kind == kind; };
  for (const std::string_view key : {"min", "max"}) read_key<LengthKeys>(fields, key, lengths);
  if (has(LengthKind::exponential)) read_key<LengthKeys>(fields, "mean", lengths);
  if (has(LengthKind::lognormal))
    for (const std::string_view key : {"median", "sigma"}) read_key<LengthKeys>(fields, key, lengths);
  require_keys(fields, lengths.kind);
  fields.finish();
}

void read_prompt(MapReader& reader, const Node& node, Workload& workload) {
  read_lengths(reader, node, workload.served.prompt);
}
void read_output(MapReader& reader, const Node& node, Workload& workload) {
  read_lengths(reader, node, workload.served.output);
}

enum class Arrival : std::uint8_t { all_at_once, poisson, bursty, replay };
constexpr auto kArrivals = std::to_array<Choice<Arrival>>({{"all_at_once", Arrival::all_at_once},
                                                           {"poisson", Arrival::poisson},
                                                           {"bursty", Arrival::bursty},
                                                           {"replay", Arrival::replay}});

void read_arrival_kind(MapReader& reader, const Node& node, Workload& workload) {
  Arrival arrival = Arrival::all_at_once;
  reader.read_choice(node, arrival, kArrivals);
  if (arrival == Arrival::replay) workload.served.arrival = ArrivalKind::replay;
  if (arrival == Arrival::poisson || arrival == Arrival::bursty) workload.served.arrival = ArrivalKind::gamma;
}

// `longest`, a number of tokens, or `none`, as a sweep may have it.
void read_pad_to(MapReader& reader, const Node& node, Workload& workload) {
  PromptPadding& padding = workload.served.padding;
  if (node.text == "none") return;
  padding.to = node.text == "longest" ? PadTo::longest : PadTo::length;
  if (padding.to == PadTo::length) reader.read(node, padding.tokens, LengthKeys::kLength.bounds);
}

constexpr Bounds kSeeds = between(0, 0x1p53);

void read_seed(MapReader& reader, const Node& node, Workload& workload) {
  std::int64_t seed = 1;
  reader.read(node, seed, kSeeds);
  workload.served.seed = static_cast<std::uint64_t>(seed);
}

struct ServingKeys {
  using Target = Workload;
  static constexpr KeyTraits kLengths{
      .bounds = LengthKeys::kLength.bounds, .unit = unit::tokens, .absent = "needed without `file`"};
  static constexpr auto keys = std::tuple(
      value("requests", [](Workload& workload) -> auto& { return workload.served.requests; },
            "requests to serve, instead of a step",
            {.bounds = between(1, 1 << 24), .unit = "requests", .absent = "all of `file`, without which it is needed"}),
      value("file", &Workload::file,
            "recorded requests, as Vidur's CSV (`arrived_at,num_prefill_tokens,num_decode_tokens`), Azure's or "
            "BurstGPT's, "
            "Mooncake's or Qwen-Bailian's JSON Lines; or conversations in ShareGPT's format"),
      shaped<LengthKeys>("prompt_tokens", read_prompt, {.is_whole = true}, "of each prompt, or a distribution",
                         kLengths),
      shaped<LengthKeys>("output_tokens", read_output, {.is_whole = true}, "of each answer, or a distribution",
                         kLengths),
      shaped("arrival", read_arrival_kind, {.words = one_of("all_at_once", "poisson", "bursty", "replay")},
             "when requests arrive", {.absent = "`all_at_once`"}),
      value("requests_per_second", [](Workload& workload) -> auto& { return workload.served.requests_per_second; },
            "for `poisson` and `bursty`",
            {.bounds = between(1e-6, 1e9), .unit = unit::requests_per_second, .absent = "needed by them"}),
      value("burstiness", [](Workload& workload) -> auto& { return workload.served.burstiness; },
            "for `bursty`: the shape of the gamma-distributed gaps, as in vLLM; 1 is `poisson`, 0.25 doubles their "
            "deviation",
            {.bounds = between(1e-3, 1e6), .absent = "needed by it"}),
      value("max_concurrency", [](Workload& workload) -> auto& { return workload.served.max_concurrency; },
            "requests that clients have open at once, at most; others wait to be sent, as with vLLM's "
            "`--max-concurrency`",
            {.bounds = between(1, 1 << 24), .unit = "requests", .absent = "no limit"}),
      value("prefix_tokens", [](Workload& workload) -> auto& { return workload.served.prefix_tokens; },
            "number of first tokens that prompts share", {.bounds = between(0, kLongestContext), .unit = unit::tokens}),
      value("prefixes", [](Workload& workload) -> auto& { return workload.served.prefixes; },
            "number of different prefixes, used in turn", {.bounds = between(1, 1 << 20), .unit = unit::count}),
      value("duplicate_prompts", [](Workload& workload) -> auto& { return workload.served.duplicate_prompts; },
            "of the requests, that repeat the prompt of the one before",
            {.bounds = between(0, 1), .unit = unit::share}),
      shaped("pad_to", read_pad_to, {.is_whole = true, .words = one_of("none", "longest")},
             "put pad tokens before shorter prompts, up to the longest prompt of all requests or to this length",
             {.bounds = LengthKeys::kLength.bounds, .unit = unit::tokens, .absent = "`none`"}),
      shaped("seed", read_seed, {.is_whole = true}, "the same seed gives the same requests",
             {.bounds = kSeeds, .absent = "1"}),
      word("kv_padding", &Workload::kv_padding, kKvPaddings,
           "under `compare`: `longest`: decode reads as many KV blocks as the longest sequence has"));
};

// What the way to arrive needs, or has no use for.
void check_arrival(MapReader& reader, const Workload& workload) {
  const Node* arrival = reader.optional("arrival");
  const bool is_replay = workload.served.arrival == ArrivalKind::replay;
  if (workload.served.arrival == ArrivalKind::gamma) {
    static_cast<void>(reader.required("requests_per_second"));
    if (arrival->text == "bursty") static_cast<void>(reader.required("burstiness"));
  } else if (const Node* rate = reader.optional("requests_per_second")) {
    reader.complain(*rate, is_replay ? "workload.requests_per_second: recorded requests arrive when they did; remove it"
                                     : "workload.requests_per_second: all requests arrive at once; remove it, or set "
                                       "arrival: poisson or bursty");
  }
  if (is_replay && workload.file.empty())
    reader.complain(*reader.node(), "workload.arrival: replay needs workload.file, the recorded requests");
}

void read_serving(MapReader& reader, Workload& workload) {
  workload.kind = WorkloadKind::serving;
  if (reader.optional("requests") == nullptr && reader.optional("file") != nullptr)
    workload.served.requests = kAllRequests;
  else
    static_cast<void>(reader.required("requests"));
  const auto read = [&](std::string_view key) { read_key<ServingKeys>(reader, key, workload); };
  for (const std::string_view key : {"requests", "file", "arrival", "max_concurrency", "prefix_tokens", "prefixes",
                                     "duplicate_prompts", "pad_to", "seed", "kv_padding"})
    read(key);
  for (const std::string_view key : {"prompt_tokens", "output_tokens"}) {
    const Node* node = workload.file.empty() ? reader.required(key) : reader.optional(key);
    if (workload.file.empty())
      read(key);
    else if (node != nullptr)
      reader.complain(*node, reader.path_to(key) + ": the requests of workload.file have their lengths; remove one");
  }
  if (workload.served.arrival == ArrivalKind::gamma) read("requests_per_second");
  const Node* arrival = reader.optional("arrival");
  if (arrival != nullptr && arrival->text == "bursty") read("burstiness");
  check_arrival(reader, workload);
  const Node* prefixes = reader.optional("prefixes");
  if (prefixes != nullptr && workload.served.prefix_tokens == 0)
    reader.complain(*prefixes, "workload.prefixes: there are none without workload.prefix_tokens");
}

struct SloKeys {
  using Target = ServiceLevel;
  static constexpr KeyTraits kTime{.bounds = above(0), .absent = "none"};
  static constexpr auto keys =
      std::tuple(value("ttft", &ServiceLevel::ttft,
                       "time to first token; a request that exceeds none of the limits counts for `goodput`", kTime),
                 value("tpot", &ServiceLevel::tpot, "time per output token", kTime),
                 value("latency", &ServiceLevel::latency, "of a whole request", kTime),
                 value("slowdown", &ServiceLevel::slowdown,
                       "latency over that of the same request with nobody else on the same devices",
                       {.bounds = at_least(1), .unit = unit::ratio, .absent = "none"}),
                 value("share", &ServiceLevel::share,
                       "of the requests, that should meet the `slo`: the report says whether they do",
                       {.bounds = fraction(), .unit = unit::share}));

  static void check(MapReader& reader, ServiceLevel& slo) {
    if (!reader.node()->children.empty() && !slo.ttft && !slo.tpot && !slo.latency && !slo.slowdown)
      reader.complain(*reader.node(), "slo: limits nothing; give it ttft, tpot, latency or slowdown");
  }
};

}  // namespace

void read_workload(MapReader reader, Workload& workload) {
  if (!reader.is_present()) return;
  const auto is_there = [&](const char* key) { return reader.node()->find(key) != nullptr; };
  constexpr std::array kServingKeys{"requests", "file", "arrival", "prompt_tokens", "output_tokens"};
  const bool serves = std::ranges::any_of(kServingKeys, is_there);
  for (const std::string_view key : names_of<StepKeys>())
    if (const Node* node = serves ? reader.optional(key) : nullptr)
      reader.complain(*node, "workload." + std::string(key) +
                                 ": belongs to a single step, but requests are to be served; remove one or the other");
  if (serves)
    read_serving(reader, workload);
  else
    read_keys<StepKeys>(reader, workload);
  reader.finish();
}

void read_slo(MapReader reader, ServiceLevel& slo) { read_section<SloKeys>(std::move(reader), slo); }

std::vector<FileKey> workload_keys() {
  std::vector<FileKey> keys = keys_of<StepKeys>();
  for (FileKey& key : keys_of<ServingKeys>()) {
    key.is_required = false;  // of a step there are none
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<FileKey> slo_keys() { return keys_of<SloKeys>(); }

bool is_offline_run(const Workload& workload) {
  const RequestWorkload& served = workload.served;
  return workload.kind == WorkloadKind::serving && workload.file.empty() && !served.max_concurrency &&
         served.prefix_tokens == 0 && served.duplicate_prompts == 0 && served.padding.to == PadTo::nothing &&
         served.arrival == ArrivalKind::all_at_once && served.prompt.kind == LengthKind::fixed &&
         served.output.kind == LengthKind::fixed;
}

}  // namespace dculab::config

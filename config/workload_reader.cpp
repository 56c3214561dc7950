#include "config/workload_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "config/step_words.hpp"

namespace dculab::config {
namespace {

constexpr auto kKvPaddings =
    std::to_array<Choice<KvPadding>>({{"none", KvPadding::none}, {"longest", KvPadding::longest}});

void read_step(MapReader& reader, Workload& workload) {
  workload.kind = WorkloadKind::step;
  reader.optional("phase", workload.phase, kPhases);
  reader.optional("batch", workload.batch, between(1, kLargestBatch));
  reader.optional("context_tokens", workload.context_tokens, between(1, kLongestContext));
  const Node* cached = reader.optional("cached_tokens");
  if (cached == nullptr) return;
  reader.read(*cached, workload.cached_tokens, between(0, kLongestContext));
  if (workload.phase == Phase::decode)
    reader.complain(*cached, "workload.cached_tokens: a decode has all but one token in the cache; set phase: prefill");
  else if (workload.cached_tokens >= workload.context_tokens)
    reader.complain(*cached, "workload.cached_tokens: must be below context_tokens: one token at least is computed");
}

constexpr auto kLengthKinds = std::to_array<Choice<LengthKind>>(
    {{"uniform", LengthKind::uniform}, {"exponential", LengthKind::exponential}, {"lognormal", LengthKind::lognormal}});

// A number, or {distribution: lognormal, median: 400, sigma: 0.9, max: 2048}.
void read_lengths(MapReader& reader, std::string_view key, LengthDistribution& lengths) {
  const Node* node = reader.required(key);
  if (node == nullptr) return;
  if (node->kind != NodeKind::map) {
    int length = 1;
    reader.read(*node, length, between(1, kLongestContext));
    lengths.center = length;
    return;
  }
  MapReader fields(node, reader.path_to(key), reader.problems());
  fields.required("distribution", lengths.kind, kLengthKinds);
  fields.optional("min", lengths.least, between(1, kLongestContext));
  if (lengths.kind == LengthKind::uniform)
    fields.required("max", lengths.most, between(1, kLongestContext));
  else
    fields.optional("max", lengths.most, between(1, kLongestContext));
  if (lengths.kind == LengthKind::exponential) fields.required("mean", lengths.center, between(1, kLongestContext));
  if (lengths.kind == LengthKind::lognormal) {
    fields.required("median", lengths.center, between(1, kLongestContext));
    fields.required("sigma", lengths.sigma, between(0, 10));
  }
  fields.finish();
}

enum class Arrival : std::uint8_t { all_at_once, poisson, bursty, replay };
constexpr auto kArrivals = std::to_array<Choice<Arrival>>({{"all_at_once", Arrival::all_at_once},
                                                           {"poisson", Arrival::poisson},
                                                           {"bursty", Arrival::bursty},
                                                           {"replay", Arrival::replay}});

void read_arrival(MapReader& reader, Workload& workload) {
  Arrival arrival = Arrival::all_at_once;
  RequestWorkload& served = workload.served;
  reader.optional("arrival", arrival, kArrivals);
  if (arrival == Arrival::replay) served.arrival = ArrivalKind::replay;
  if (arrival == Arrival::poisson || arrival == Arrival::bursty) {
    served.arrival = ArrivalKind::gamma;
    reader.required("requests_per_second", served.requests_per_second, between(1e-6, 1e9));
  } else if (const Node* rate = reader.optional("requests_per_second")) {
    reader.complain(*rate, arrival == Arrival::replay
                               ? "workload.requests_per_second: recorded requests arrive when they did; remove it"
                               : "workload.requests_per_second: all requests arrive at once; remove it, or set "
                                 "arrival: poisson or bursty");
  }
  if (arrival == Arrival::bursty) reader.required("burstiness", served.burstiness, between(1e-3, 1e6));
  if (arrival == Arrival::replay && workload.file.empty() && reader.is_present())
    reader.complain(*reader.node(), "workload.arrival: replay needs workload.file, the recorded requests");
}

// `longest`, a number of tokens, or `none`, as a sweep may have it.
void read_pad_to(MapReader& reader, PromptPadding& padding) {
  const Node* node = reader.optional("pad_to");
  if (node == nullptr || node->text == "none") return;
  padding.to = node->text == "longest" ? PadTo::longest : PadTo::length;
  if (padding.to == PadTo::length) reader.read(*node, padding.tokens, between(1, kLongestContext));
}

void read_serving(MapReader& reader, Workload& workload) {
  workload.kind = WorkloadKind::serving;
  RequestWorkload& served = workload.served;
  reader.required("requests", served.requests, between(1, 1 << 24));
  reader.optional("file", workload.file);
  for (const auto& [key, lengths] : {std::pair{"prompt_tokens", &served.prompt}, {"output_tokens", &served.output}}) {
    if (workload.file.empty())
      read_lengths(reader, key, *lengths);
    else if (const Node* node = reader.optional(key))
      reader.complain(*node, reader.path_to(key) + ": the requests of workload.file have their lengths; remove one");
  }
  read_arrival(reader, workload);
  reader.optional("prefix_tokens", served.prefix_tokens, between(0, kLongestContext));
  const Node* prefixes = reader.optional("prefixes");
  if (prefixes != nullptr) reader.read(*prefixes, served.prefixes, between(1, 1 << 20));
  if (prefixes != nullptr && served.prefix_tokens == 0)
    reader.complain(*prefixes, "workload.prefixes: there are none without workload.prefix_tokens");
  reader.optional("duplicate_prompts", served.duplicate_prompts, between(0, 1));
  read_pad_to(reader, served.padding);
  std::int64_t seed = 1;
  reader.optional("seed", seed, between(0, 0x1p53));
  served.seed = static_cast<std::uint64_t>(seed);
  reader.optional("kv_padding", workload.kv_padding, kKvPaddings);
}

}  // namespace

void read_workload(MapReader reader, Workload& workload) {
  if (!reader.is_present()) return;
  const auto is_there = [&](const char* key) { return reader.node()->find(key) != nullptr; };
  constexpr std::array kServingKeys{"requests", "file", "arrival", "prompt_tokens", "output_tokens"};
  const bool serves = std::ranges::any_of(kServingKeys, is_there);
  for (const std::string_view key : {"phase", "batch", "context_tokens", "cached_tokens"})
    if (const Node* node = serves ? reader.optional(key) : nullptr)
      reader.complain(*node, "workload." + std::string(key) +
                                 ": belongs to a single step, but requests are to be served; remove one or the other");
  if (serves)
    read_serving(reader, workload);
  else
    read_step(reader, workload);
  reader.finish();
}

void read_slo(MapReader reader, ServiceLevel& slo) {
  for (const auto& [key, target] : {std::pair{"ttft", &slo.ttft}, {"tpot", &slo.tpot}, {"latency", &slo.latency}})
    if (const Node* node = reader.optional(key)) {
      Seconds most;
      reader.read(*node, most, above(0));
      *target = most;
    }
  if (const Node* slowdown = reader.optional("slowdown")) reader.read(*slowdown, slo.slowdown.emplace(1), at_least(1));
  reader.optional("share", slo.share, fraction());
  if (reader.is_present() && !reader.node()->children.empty() && !slo.ttft && !slo.tpot && !slo.latency &&
      !slo.slowdown)
    reader.complain(*reader.node(), "slo: limits nothing; give it ttft, tpot, latency or slowdown");
  reader.finish();
}

bool is_offline_run(const Workload& workload) {
  const RequestWorkload& served = workload.served;
  return workload.kind == WorkloadKind::serving && workload.file.empty() && served.prefix_tokens == 0 &&
         served.duplicate_prompts == 0 && served.padding.to == PadTo::nothing &&
         served.arrival == ArrivalKind::all_at_once && served.prompt.kind == LengthKind::fixed &&
         served.output.kind == LengthKind::fixed;
}

}  // namespace dculab::config

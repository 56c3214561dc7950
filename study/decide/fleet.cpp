#include "study/decide/fleet.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/pareto.hpp"
#include "study/decide/preference.hpp"

namespace dculab::study {
namespace {

constexpr int kMostServersOfReplica = 8;
constexpr int kFewestRequests = 64, kMostRequests = 512;  // of a scheduler's, of a workload that does not say how many
constexpr int kAloneRequests = 16;                        // one after the other
constexpr int kMostReplicas = 1024;

[[nodiscard]] bool has_level(const ServiceLevel& slo) { return slo.ttft || slo.tpot || slo.latency || slo.slowdown; }

// What is wrong, without the file that it is wrong in.
[[nodiscard]] std::string reason_of(const InputError& error, const std::string& file) {
  const std::string text = error.what();
  return text.starts_with(file + ": ") ? text.substr(file.size() + 2) : text;
}

// A layout with what its replica is.
struct Tried {
  Layout layout;
  sim::ServingCase serving;
};

class FleetSearch {
 public:
  FleetSearch(const FleetQuestion& question, const sim::Machine& machine, const ModelShape& model,
              const RequestWorkload& workload)
      : question_(question),
        machine_(machine),
        model_(model),
        workload_(workload),
        load_(mean_load(workload, question.scenario.slo, question.sequences)) {}

  [[nodiscard]] FleetChoice choose();

 private:
  void try_layouts(int least, int most);
  void try_layout(const sim::ReplicaDevices& devices);
  [[nodiscard]] std::optional<Tried> priced(const sim::ReplicaDevices& devices, Dtype dtype, std::string& why_not);
  [[nodiscard]] int fewest_replicas(const Layout& layout) const;
  [[nodiscard]] ReplicaService serve(const Tried& tried, RequestWorkload workload) const;
  [[nodiscard]] ReplicaService serve_share(const Tried& tried, int replicas) const;
  [[nodiscard]] bool meets_level(const ReplicaService& service) const;
  [[nodiscard]] bool meets_level_alone(Tried& tried) const;
  void add_replicas(Tried& tried, std::int64_t most_devices) const;
  [[nodiscard]] std::optional<std::size_t> fewest_devices();
  [[nodiscard]] std::optional<std::size_t> fastest();
  [[noreturn]] void refuse() const;

  const FleetQuestion& question_;
  const sim::Machine& machine_;
  const ModelShape& model_;
  const RequestWorkload& workload_;
  const sim::SteadyLoad load_;
  std::vector<Tried> tried_;
  std::vector<Layout> refused_;
};

std::optional<Tried> FleetSearch::priced(const sim::ReplicaDevices& devices, Dtype dtype, std::string& why_not) {
  config::Scenario scenario = question_.scenario;
  scenario.deployment.tensor_parallel_size = devices.tensor_parallel_size;
  scenario.deployment.pipeline_parallel_size = devices.pipeline_parallel_size;
  scenario.deployment.experts = devices.experts;
  Tried tried;
  tried.layout.devices = devices;
  try {
    tried.serving = serving_case(scenario, machine_, model_, load_);
  } catch (const InputError& error) {
    why_not = reason_of(error, scenario.file);
    return std::nullopt;
  }
  sim::Setting& setting = tried.layout.setting;
  setting = {model_.heads().num_key_value_heads, dtype, question_.block_size.value_or(tried.serving.options.block_size),
             sim::Setting{}.partition_tokens};
  if (!is_sound(tried.serving, setting)) {
    why_not = "its kernels take no such part of the model";
    return std::nullopt;
  }
  tried.layout.served = sim::serve(tried.serving, setting);
  if (tried.layout.served.batch > 0) return tried;
  why_not = tried.layout.served.limit == sim::SequenceLimit::tpot
                ? "one sequence alone takes longer a token than slo.tpot"
                : "not one sequence fits beside the weights";
  return std::nullopt;
}

void FleetSearch::try_layout(const sim::ReplicaDevices& devices) {
  std::string why_not;
  bool serves = false;
  for (const Dtype dtype : question_.kv_dtypes)
    if (auto tried = priced(devices, dtype, why_not)) {
      tried_.push_back(*std::move(tried));
      serves = true;
    }
  if (!serves) refused_.push_back({.devices = devices, .setting = {}, .why_not = why_not});
}

void FleetSearch::try_layouts(int least, int most) {
  for (const sim::ReplicaDevices& devices : replica_layouts(model_, most))
    if (devices.devices() > least) try_layout(devices);
}

// In closed form: fewer do not serve the rate.
int FleetSearch::fewest_replicas(const Layout& layout) const {
  const double requests = layout.served.output_tokens_per_second / load_.output_tokens;
  const double carried = has_level(question_.scenario.slo) ? requests : kOfferedShare * requests;
  return static_cast<int>(std::min<double>(kMostReplicas + 1, std::max(1.0, std::ceil(*question_.rate / carried))));
}

ReplicaService FleetSearch::serve(const Tried& tried, RequestWorkload workload) const {
  sim::Deployment deployment;
  deployment.tensor_parallel_size = tried.layout.devices.tensor_parallel_size;
  deployment.pipeline_parallel_size = tried.layout.devices.pipeline_parallel_size;
  deployment.experts = tried.layout.devices.experts;
  const sim::SimulatedServer server{
      .machine = machine_,
      .model = model_,
      .options = options_with(tried.serving, tried.layout.setting, tried.layout.served.batch),
      .deployment = deployment};
  if (const auto found = sim::problems(server); !found.empty()) throw InputError("", found.front());
  const ServingMetrics metrics = sim::simulate(server, workload, question_.scenario.slo).metrics;
  return {.requests_per_second = workload.arrival == ArrivalKind::gamma ? workload.requests_per_second : 0,
          .slo_attainment = metrics.share_within_objective(),
          .ttft_p90 = metrics.ttft().quantile(0.9),
          .tpot_p90 = metrics.tpot().count() > 0 ? metrics.tpot().quantile(0.9) : Seconds(),
          .latency_mean = metrics.latency().mean()};
}

ReplicaService FleetSearch::serve_share(const Tried& tried, int replicas) const {
  RequestWorkload workload = share_of(workload_, replicas);
  if (question_.count_requests) {
    // Four times as many as are served at a time by Little's law; of groups that share experts one is simulated.
    const int ranks = tried.layout.devices.ranks();
    const double at_a_time =
        workload.requests_per_second * (tried.layout.served.tpot * load_.output_tokens).value() / ranks;
    workload.requests = ranks * std::clamp(static_cast<int>(4 * at_a_time), kFewestRequests, kMostRequests);
  }
  return serve(tried, std::move(workload));
}

bool FleetSearch::meets_level(const ReplicaService& service) const {
  return service.slo_attainment >= question_.scenario.slo.share;
}

// One request after the other: more replicas are no faster.
bool FleetSearch::meets_level_alone(Tried& tried) const {
  RequestWorkload workload = workload_;
  workload.requests = std::min(workload.requests, kAloneRequests);
  workload.arrival = ArrivalKind::all_at_once;
  workload.max_concurrency = 1;
  const ReplicaService service = serve(tried, std::move(workload));
  if (meets_level(service)) return true;
  const ServiceLevel& slo = question_.scenario.slo;
  tried.layout.why_not = slo.ttft && service.ttft_p90 > *slo.ttft ? "one request alone misses slo.ttft"
                                                                  : "one request alone misses the slo";
  return false;
}

// Replicas until the level is met, on `most_devices` at most: doubled, then bisected.
void FleetSearch::add_replicas(Tried& tried, std::int64_t most_devices) const {
  Layout& layout = tried.layout;
  const int least = layout.replicas;
  const int most = static_cast<int>(std::min<std::int64_t>(kMostReplicas, most_devices / layout.devices.devices()));
  std::optional<ReplicaService> served;
  int good = least, bad = least - 1;
  for (; good <= most; bad = good, good = std::max(good + 1, std::min(2 * good, most))) {
    const ReplicaService service = serve_share(tried, good);
    if (meets_level(service)) {
      served = service;
      break;
    }
    if (good == least && !meets_level_alone(tried)) break;
  }
  while (served && good - bad > 1) {
    const int middle = bad + (good - bad) / 2;
    const ReplicaService service = serve_share(tried, middle);
    if (meets_level(service)) {
      served = service;
      good = middle;
    } else {
      bad = middle;
    }
  }
  layout.simulated = served;
  layout.replicas = served ? good : 0;
  if (!served && layout.why_not.empty())
    layout.why_not = "misses the slo on " + std::to_string(std::int64_t{most} * layout.devices.devices()) + " devices";
}

std::optional<std::size_t> FleetSearch::fewest_devices() {
  const std::int64_t offered = question_.offer.most().value_or(std::numeric_limits<int>::max());
  std::vector<std::size_t> order(tried_.size());
  for (std::size_t index = 0; index < tried_.size(); ++index) {
    order[index] = index;
    tried_[index].layout.replicas = fewest_replicas(tried_[index].layout);
  }
  std::ranges::stable_sort(order, {}, [this](std::size_t index) { return tried_[index].layout.num_devices(); });
  std::optional<std::size_t> best;
  const auto bits_of = [this](std::size_t index) { return bits(tried_[index].layout.setting.kv_cache_dtype); };
  for (const std::size_t index : order) {
    Layout& layout = tried_[index].layout;
    if (layout.num_devices() > offered || layout.replicas > kMostReplicas) {
      layout.why_not = "takes " + std::to_string(layout.num_devices()) + " devices or more";
      layout.replicas = 0;
      continue;
    }
    const std::int64_t most = best ? tried_[*best].layout.num_devices() : offered;
    // As many devices with fewer bits are no better.
    if (layout.num_devices() > most || (best && bits_of(index) < bits_of(*best) && layout.num_devices() == most))
      continue;
    add_replicas(tried_[index], most);
    if (layout.replicas == 0) continue;
    const auto rank = [&](std::size_t each) { return std::tuple(tried_[each].layout.num_devices(), -bits_of(each)); };
    const auto latency = [&](std::size_t each) { return tried_[each].layout.simulated->latency_mean; };
    if (!best || rank(index) < rank(*best) ||
        (rank(index) == rank(*best) && latency(index) * (1 + kServedResolution) < latency(*best)))
      best = index;
  }
  return best;
}

std::optional<std::size_t> FleetSearch::fastest() {
  std::vector<Evaluated> evaluated;
  for (Tried& tried : tried_) {
    Layout& layout = tried.layout;
    const std::int64_t devices =
        question_.offer.most().value_or(std::max<std::int64_t>(question_.offer.devices, layout.devices.devices()));
    layout.replicas = static_cast<int>(devices / layout.devices.devices());
    if (layout.replicas > 0 && has_level(question_.scenario.slo) && !meets_level_alone(tried)) layout.replicas = 0;
    evaluated.push_back(
        {.value = layout_text(layout.devices), .figure = layout.replicas * layout.served.output_tokens_per_second});
  }
  // 16 bits first: what more bits cost is given up, as for every KV dtype.
  const auto verdict = decide(evaluated, {.given_up = 0});
  if (!verdict) return std::nullopt;
  std::size_t chosen = verdict->chosen;
  for (std::size_t index = 0; index < tried_.size(); ++index)
    if (bits(tried_[index].layout.setting.kv_cache_dtype) > bits(tried_[chosen].layout.setting.kv_cache_dtype) &&
        evaluated[index].figure * (1 + kAccuracyTie) >= evaluated[chosen].figure)
      chosen = index;
  return chosen;
}

void FleetSearch::refuse() const {
  std::string reasons;
  const auto add = [&reasons](const Layout& layout) {
    reasons += (reasons.empty() ? "" : "; ") + layout_text(layout.devices) + ": " + layout.why_not;
  };
  for (const Tried& tried : tried_) add(tried.layout);
  for (const Layout& layout : refused_) add(layout);
  throw InputError(model_.name + " on " + machine_.name,
                   "none of the layouts serves the load (" + reasons +
                       "); offer more devices, weights of fewer bits, a looser slo or another machine");
}

FleetChoice FleetSearch::choose() {
  const int server = question_.offer.devices;
  try_layouts(0, server);
  const int servers = question_.offer.servers.value_or(kMostServersOfReplica);
  for (int some = 2; tried_.empty() && some <= std::min(servers, kMostServersOfReplica); some *= 2)
    try_layouts(server * some / 2, server * some);
  const std::optional<std::size_t> best = question_.rate ? fewest_devices() : fastest();
  if (!best) refuse();
  FleetChoice choice{.offer = question_.offer, .rate = question_.rate.value_or(0), .layouts = {}, .chosen = *best};
  for (Tried& tried : tried_) choice.layouts.push_back(std::move(tried.layout));
  choice.layouts.insert(choice.layouts.end(), refused_.begin(), refused_.end());
  return choice;
}

}  // namespace

int FleetChoice::replicas_of_server(const Layout& layout) const {
  return std::max(1, offer.devices / layout.devices.devices());
}

std::vector<std::size_t> FleetChoice::front() const {
  sim::ParetoFront front;
  for (std::size_t index = 0; index < layouts.size(); ++index) {
    const Layout& layout = layouts[index];
    if (layout.replicas == 0 || (rate > 0 && !layout.simulated)) continue;
    if (rate > 0)
      front.offer(index, std::array{static_cast<double>(layout.num_devices()), layout.simulated->latency_mean.value()});
    else
      front.offer(index,
                  std::array{-layout.replicas * layout.served.output_tokens_per_second, layout.served.tpot.value()});
  }
  std::vector<std::size_t> indices;
  for (const sim::ParetoFront::Point& point : front.points()) indices.push_back(point.number);
  return indices;
}

int FleetChoice::servers() const {
  const int devices = choice().devices.devices();
  if (devices > offer.devices) return choice().replicas * ((devices + offer.devices - 1) / offer.devices);
  return (choice().replicas + replicas_of_server() - 1) / replicas_of_server();
}

FleetChoice choose_fleet(const FleetQuestion& question, const sim::Machine& machine, const ModelShape& model,
                         const RequestWorkload& workload) {
  return FleetSearch(question, machine, model, workload).choose();
}

}  // namespace dculab::study

#include "study/decide/fleet.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/decide/preference.hpp"
#include "study/decide/tried_layout.hpp"

namespace dculab::study {
namespace {

constexpr int kMostServersOfReplica = 8;
constexpr std::size_t kAtOnce = 4;  // layouts that are simulated at the same time, whatever cores there are

class FleetSearch {
 public:
  FleetSearch(const FleetQuestion& question, const sim::Machine& machine, const ModelShape& model,
              const RequestWorkload& workload)
      : question_(question),
        slo_(question.scenario.slo),
        machine_(machine),
        model_(model),
        workload_(workload),
        load_(mean_load(workload, question.scenario.slo, question.sequences)),
        asked_{workload, load_, question.scenario.slo, question.offer, question.rate, question.count_requests} {}

  [[nodiscard]] FleetChoice choose();

 private:
  void try_layouts(int least, int most);
  void try_layout(const sim::ReplicaDevices& devices);
  [[nodiscard]] std::optional<Tried> priced(Dtype dtype, Layout& refused);
  void add_replicas(const std::vector<std::size_t>& layouts, std::int64_t most_devices);
  [[nodiscard]] bool is_better(std::size_t one, std::size_t other) const;
  [[nodiscard]] std::optional<std::size_t> fewest_devices();
  [[nodiscard]] std::optional<std::size_t> fastest();
  [[noreturn]] void refuse() const;

  const FleetQuestion& question_;
  const ServiceLevel& slo_;
  const sim::Machine& machine_;
  const ModelShape& model_;
  const RequestWorkload& workload_;
  const sim::SteadyLoad load_;
  const AskedLoad asked_;
  std::vector<Tried> tried_;
  std::vector<Layout> refused_;
};

// Of refused.devices; what is wrong with them is set where they do not serve.
std::optional<Tried> FleetSearch::priced(Dtype dtype, Layout& refused) {
  auto tried = tried_layout({question_.scenario, machine_, model_, load_, question_.block_size}, refused.devices, dtype,
                            refused.why_not);
  if (!tried) return std::nullopt;
  tried->layout.served = sim::serve(tried->serving, tried->layout.setting);
  if (tried->layout.served.batch > 0) return tried;
  set_why_none(tried->layout);
  refused.why_not = tried->layout.why_not;
  refused.missed = tried->layout.missed;
  return std::nullopt;
}

void FleetSearch::try_layout(const sim::ReplicaDevices& devices) {
  Layout refused{.devices = devices, .setting = {}};
  bool serves = false;
  for (const Dtype dtype : question_.kv_dtypes)
    if (auto tried = priced(dtype, refused)) {
      tried_.push_back(*std::move(tried));
      serves = true;
    }
  if (!serves) refused_.push_back(std::move(refused));
}

void FleetSearch::try_layouts(int least, int most) {
  for (const sim::ReplicaDevices& devices : replica_layouts(model_, most))
    if (devices.devices() > least) try_layout(devices);
}

// Of each of them, at the same time.
void FleetSearch::add_replicas(const std::vector<std::size_t>& layouts, std::int64_t most_devices) {
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      study::add_replicas(tried_[layouts[index]], asked_, most_devices);
      return std::string();
    };
  };
  const int cores = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, static_cast<int>(kAtOnce));
  sim::work_in_order({0, layouts.size()}, cores, make_worker, [](std::uint64_t, const std::string&) {});
}

// Fewer devices, more bits of KV, a smaller mean latency. Precondition: both were simulated.
bool FleetSearch::is_better(std::size_t one, std::size_t other) const {
  const Layout &a = tried_[one].layout, &b = tried_[other].layout;
  if (a.num_devices() != b.num_devices()) return a.num_devices() < b.num_devices();
  const int more_bits = bits(a.setting.kv_cache_dtype) - bits(b.setting.kv_cache_dtype);
  if (more_bits != 0) return more_bits > 0;
  return a.simulated->latency_mean * (1 + kServedResolution) < b.simulated->latency_mean;
}

std::optional<std::size_t> FleetSearch::fewest_devices() {
  std::vector<std::size_t> order(tried_.size());
  for (std::size_t index = 0; index < tried_.size(); ++index) {
    order[index] = index;
    tried_[index].layout.replicas = fewest_replicas(tried_[index].layout, asked_);
  }
  std::ranges::stable_sort(order, {}, [this](std::size_t index) { return tried_[index].layout.num_devices(); });
  std::optional<std::size_t> best;
  std::vector<std::size_t> together;
  const auto simulate = [&] {
    add_replicas(together, best ? tried_[*best].layout.num_devices() : std::numeric_limits<int>::max());
    for (const std::size_t index : together)
      if (tried_[index].layout.replicas > 0 && (!best || is_better(index, *best))) best = index;
    together.clear();
  };
  for (const std::size_t index : order) {
    Layout& layout = tried_[index].layout;
    const int offered = question_.offer.most_replicas(layout.devices).value_or(kMostReplicas);
    if (layout.replicas > std::min(offered, kMostReplicas)) {
      layout.why_not = "needs " + std::to_string(layout.num_devices()) + " devices or more";
      layout.replicas = 0;
    } else if (!best || layout.num_devices() <= tried_[*best].layout.num_devices()) {
      together.push_back(index);
      if (together.size() == kAtOnce) simulate();
    }
  }
  simulate();
  return best;
}

std::optional<std::size_t> FleetSearch::fastest() {
  std::vector<double> rates;
  for (Tried& tried : tried_) {
    Layout& layout = tried.layout;
    layout.replicas = question_.offer.most_replicas(layout.devices)
                          .value_or(std::max(1, question_.offer.devices / layout.devices.devices()));
    if (layout.replicas > 0 && has_limits(slo_) && !meets_level_alone(tried, asked_)) layout.replicas = 0;
    rates.push_back(layout.replicas * layout.served.output_tokens_per_second);
  }
  // The best of those with as many bits of KV, the most bits first, within what is given up for them.
  const double most = rates.empty() ? 0 : *std::ranges::max_element(rates);
  if (most == 0) return std::nullopt;
  std::size_t chosen = 0;
  const auto is_good = [&](std::size_t index) { return rates[index] * (1 + kAccuracyTie) >= most; };
  const auto bits_of = [&](std::size_t index) { return bits(tried_[index].layout.setting.kv_cache_dtype); };
  for (std::size_t index = 0; index < rates.size(); ++index) {
    if (!is_good(index)) continue;
    const bool same = is_good(chosen) && bits_of(index) == bits_of(chosen);
    if (!is_good(chosen) || bits_of(index) > bits_of(chosen) ||
        (same && rates[index] > rates[chosen] * (1 + kPriceResolution)))
      chosen = index;
  }
  return chosen;
}

void FleetSearch::refuse() const {
  std::vector<Refusal> found;
  const auto add = [&found](const Layout& layout) {
    found.push_back({layout.why_not, layout_text(layout.devices), layout.missed});
  };
  for (const Tried& tried : tried_) add(tried.layout);
  for (const Layout& layout : refused_) add(layout);
  throw InputError(model_.name + " on " + machine_.name,
                   "no layout serves the load (" + reasons_text(found) + "); " +
                       (question_.offer.servers ? "offer more servers, " : "") +
                       "take weights of fewer bits, a looser slo or another machine");
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

int FleetChoice::servers() const {
  const Layout& layout = choice();
  const int each = offer.replicas_of_server(layout.devices);
  return (layout.replicas + each - 1) / each * offer.servers_of_replica(layout.devices);
}

std::vector<std::size_t> FleetChoice::rivals() const {
  constexpr std::size_t kMost = 4;
  std::vector<std::size_t> others;
  for (std::size_t index = 0; index < layouts.size(); ++index)
    if (index != chosen && layouts[index].replicas > 0) others.push_back(index);
  std::ranges::stable_sort(others, {}, [this](std::size_t index) {
    const Layout& layout = layouts[index];
    return rate > 0 ? static_cast<double>(layout.num_devices())
                    : -layout.replicas * layout.served.output_tokens_per_second;
  });
  others.resize(std::min(others.size(), kMost));
  return others;
}

FleetChoice choose_fleet(const FleetQuestion& question, const sim::Machine& machine, const ModelShape& model,
                         const RequestWorkload& workload) {
  return FleetSearch(question, machine, model, workload).choose();
}

}  // namespace dculab::study

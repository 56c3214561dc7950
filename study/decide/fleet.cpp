#include "study/decide/fleet.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/decide/largest_rate.hpp"
#include "study/decide/preference.hpp"
#include "study/decide/tried_layout.hpp"

namespace dculab::study {
namespace {

constexpr int kMostServersOfReplica = 8;
constexpr std::size_t kAtOnce = 2;  // layouts that are simulated at the same time, whatever cores there are

void refuse_count(Layout& layout) {
  layout.why_not = "needs more devices than are offered";
  layout.needed_devices = layout.num_devices();
  layout.replicas = 0;
}

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
        asked_{workload, load_, question.scenario.slo, question.rate, question.count_requests} {}

  [[nodiscard]] FleetChoice choose();

 private:
  void try_layouts(int least, int most);
  void try_layout(const sim::ReplicaDevices& devices);
  [[nodiscard]] std::optional<Tried> priced(Dtype dtype, Layout& refused);
  void add_replicas(const std::vector<std::size_t>& layouts, std::int64_t most_devices, Sample sample);
  [[nodiscard]] int most_replicas(const Layout& layout) const;
  [[nodiscard]] bool is_better(std::size_t one, std::size_t other) const;
  [[nodiscard]] std::optional<std::size_t> best() const;
  [[nodiscard]] std::vector<std::size_t> next_layouts() const;
  [[nodiscard]] std::optional<std::size_t> fewest_devices();
  void take_all_devices();
  [[nodiscard]] std::optional<std::size_t> of_largest_rate();
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
  double largest_rate_ = 0;
};

// Of refused.devices; what is wrong with them is set where they do not serve: of several formats of KV the time that
// misses the service level by least.
std::optional<Tried> FleetSearch::priced(Dtype dtype, Layout& refused) {
  std::string why_not;
  auto tried = tried_layout({question_.scenario, machine_, model_, load_, question_.block_size}, refused.devices, dtype,
                            why_not);
  if (!tried) {
    if (!refused.missed) refused.why_not = why_not;
    return std::nullopt;
  }
  tried->layout.served = sim::serve(tried->serving, tried->layout.setting);
  if (tried->layout.served.batch > 0) return tried;
  set_why_none(tried->layout);
  const bool is_closer = !refused.missed || !tried->layout.missed || *tried->layout.missed < *refused.missed;
  if (is_closer) refused = tried->layout;
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

int FleetSearch::most_replicas(const Layout& layout) const {
  return std::min(kMostReplicas, question_.offer.most_replicas(layout.devices).value_or(kMostReplicas));
}

// Of each of them, at the same time.
void FleetSearch::add_replicas(const std::vector<std::size_t>& layouts, std::int64_t most_devices, Sample sample) {
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      Tried& tried = tried_[layouts[index]];
      const std::int64_t most = most_devices / tried.layout.devices.devices();
      const int offered = most_replicas(tried.layout);
      study::add_replicas(tried, asked_, static_cast<int>(std::min<std::int64_t>(most, offered)), sample);
      if (tried.layout.replicas > offered) refuse_count(tried.layout);
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

std::optional<std::size_t> FleetSearch::best() const {
  std::optional<std::size_t> best;
  for (std::size_t index = 0; index < tried_.size(); ++index)
    if (tried_[index].layout.simulated && (!best || is_better(index, *best))) best = index;
  return best;
}

// Of those that were not simulated and need no more devices than the best, the fewest devices first.
std::vector<std::size_t> FleetSearch::next_layouts() const {
  const std::optional<std::size_t> found = best();
  std::vector<std::size_t> next;
  for (std::size_t index = 0; index < tried_.size(); ++index) {
    const Layout& layout = tried_[index].layout;
    if (layout.replicas > 0 && !layout.simulated &&
        (!found || layout.num_devices() <= tried_[*found].layout.num_devices()))
      next.push_back(index);
  }
  std::ranges::stable_sort(next, {}, [this](std::size_t index) { return tried_[index].layout.num_devices(); });
  next.resize(std::min(next.size(), kAtOnce));
  return next;
}

// Few requests rank the layouts; the one that is chosen must serve many.
std::optional<std::size_t> FleetSearch::fewest_devices() {
  for (Tried& tried : tried_) {
    Layout& layout = tried.layout;
    layout.replicas = fewest_replicas(layout, asked_);
    if (layout.replicas > most_replicas(layout)) refuse_count(layout);
  }
  for (;;) {
    const std::optional<std::size_t> found = best();
    if (const auto next = next_layouts(); !next.empty())
      add_replicas(next, found ? tried_[*found].layout.num_devices() : std::numeric_limits<int>::max(), Sample::few);
    else if (found && tried_[*found].sample == Sample::few)
      add_replicas({*found}, std::numeric_limits<int>::max(), Sample::many);
    else
      return found;
  }
}

// All replicas that are offered, 0 where one request alone misses the service level.
void FleetSearch::take_all_devices() {
  for (Tried& tried : tried_) {
    Layout& layout = tried.layout;
    layout.replicas = question_.offer.most_replicas(layout.devices)
                          .value_or(std::max(1, question_.offer.devices / layout.devices.devices()));
    if (layout.replicas > 0 && has_limits(slo_) && !meets_level_alone(tried, asked_)) layout.replicas = 0;
  }
}

std::optional<std::size_t> FleetSearch::of_largest_rate() {
  take_all_devices();
  const std::optional<LargestRate> found = largest_rate(tried_, asked_);
  if (!found) return std::nullopt;
  largest_rate_ = found->requests_per_second;
  return found->layout;
}

std::optional<std::size_t> FleetSearch::fastest() {
  take_all_devices();
  std::vector<double> rates;
  for (const Tried& tried : tried_)
    rates.push_back(tried.layout.replicas * tried.layout.served.output_tokens_per_second);
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
    found.push_back({layout.why_not, layout_text(layout.devices), layout.missed, layout.needed_devices});
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
  const bool wants_rate = !question_.rate && has_limits(slo_) && workload_.arrival == ArrivalKind::all_at_once;
  const std::optional<std::size_t> best = wants_rate       ? of_largest_rate()
                                          : question_.rate ? fewest_devices()
                                                           : fastest();
  if (!best) refuse();
  FleetChoice choice{.offer = question_.offer,
                     .rate = question_.rate.value_or(largest_rate_),
                     .is_largest_rate = wants_rate,
                     .layouts = {},
                     .chosen = *best};
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

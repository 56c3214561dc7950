#include "sim/compute/matmul_rate.hpp"

#include <algorithm>
#include <iterator>

namespace dculab::sim {
namespace {

[[nodiscard]] MatmulKernel kernel_of(const lower::ProductShape& product) {
  return {product.weights, product.activations};
}

// Of a pass with `rows` rows, from time_of(rows, figure) of those that were measured.
template <class ByRows, class TimeOf>
[[nodiscard]] double pass_time(const ByRows& measured, double rows, TimeOf&& time_of) {
  const auto at = [&](auto place) { return time_of(place->first, place->second); };
  const auto above =
      std::find_if(measured.begin(), measured.end(), [rows](const auto& each) { return each.first >= rows; });
  if (above == measured.end()) return at(std::prev(above)) * rows / std::prev(above)->first;
  if (above == measured.begin()) return at(above);
  const auto below = std::prev(above);
  const double way = (rows - below->first) / (above->first - below->first);
  return at(below) + way * (at(above) - at(below));
}

[[nodiscard]] double largest(const ShareByRows& shares) {
  return std::ranges::max_element(shares, {}, &ShareByRows::value_type::second)->second;
}

// A time per weight, from that in long rows of weights and that in short ones: linear in 1 / in-features, for each row
// costs something however long it is. Never faster in short rows; beyond the long ones two thirds of theirs at least,
// or the longest would cost nothing.
[[nodiscard]] double at_length(double in_long, double in_short, std::int64_t in_features) {
  constexpr double kLeast = 2.0 / 3;
  const double place = (1.0 / static_cast<double>(in_features) - 1.0 / kLongRow) / (1.0 / kShortRow - 1.0 / kLongRow);
  return std::max(kLeast * in_long, in_long + place * (std::max(in_short, in_long) - in_long));
}

// The time per weight, of `figures` and, where the machine knows them, `short_ones`.
template <class ByRows, class TimeAt>
[[nodiscard]] double time_per_weight(const ByRows& figures, const std::map<MatmulKernel, ByRows>& short_ones,
                                     const lower::ProductShape& product, TimeAt&& time_at) {
  const double in_long = time_at(figures, product.rows);
  const auto found = short_ones.find(kernel_of(product));
  return found == short_ones.end() ? in_long
                                   : at_length(in_long, time_at(found->second, product.rows), product.in_features);
}

}  // namespace

FlopsPerSecond rate_at(const RateByRows& rates, double rows) {
  const auto time_of = [](int measured, FlopsPerSecond rate) { return measured / rate.value(); };
  return FlopsPerSecond(rows / pass_time(rates, rows, time_of));
}

double share_at(const ShareByRows& shares, double rows) {
  return 1 / pass_time(shares, rows, [](int, double share) { return 1 / share; });
}

std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const lower::ProductShape& product) {
  const auto found = machine.matmul_rates.find(kernel_of(product));
  if (found == machine.matmul_rates.end()) return std::nullopt;
  const auto time_at = [](const RateByRows& rates, double rows) { return 1 / rate_at(rates, rows).value(); };
  return FlopsPerSecond(1 / time_per_weight(found->second, machine.short_matmul_rates, product, time_at));
}

std::optional<double> matmul_dram_share(const Machine& machine, const lower::ProductShape& product) {
  const auto found = machine.matmul_dram_shares.find(kernel_of(product));
  if (found == machine.matmul_dram_shares.end()) return std::nullopt;
  const auto pass = [](const ShareByRows& shares, double rows) { return 1 / share_at(shares, rows); };
  const auto fastest = [](const ShareByRows& shares, double /*rows*/) { return 1 / largest(shares); };
  const double whole = std::max(1.0, time_per_weight(found->second, machine.short_matmul_dram_shares, product, pass));
  const double loading =
      std::clamp(time_per_weight(found->second, machine.short_matmul_dram_shares, product, fastest), 1.0, whole);
  return 1 / (loading / machine.sustained.dram_bandwidth + (whole - loading) / machine.stack.reached.matmul_compute);
}

}  // namespace dculab::sim

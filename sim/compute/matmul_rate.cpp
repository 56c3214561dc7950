#include "sim/compute/matmul_rate.hpp"

#include <algorithm>
#include <iterator>

namespace dculab::sim {
namespace {

[[nodiscard]] MatmulKernel kernel_of(const Op& op) {
  const Dtype stored = op.weight_format.dtype;
  return {stored == Dtype::int2 || stored == Dtype::int3 ? Dtype::int4 : stored, op.activations};
}

[[nodiscard]] double rows_of(const Op& op) { return std::max(1.0, static_cast<double>(op.m)); }

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

}  // namespace

FlopsPerSecond rate_at(const RateByRows& rates, double rows) {
  const auto time_of = [](int measured, FlopsPerSecond rate) { return measured / rate.value(); };
  return FlopsPerSecond(rows / pass_time(rates, rows, time_of));
}

double share_at(const ShareByRows& shares, double rows) {
  return 1 / pass_time(shares, rows, [](int, double share) { return 1 / share; });
}

std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const Op& op) {
  const auto found = machine.matmul_rates.find(kernel_of(op));
  if (found == machine.matmul_rates.end()) return std::nullopt;
  return rate_at(found->second, rows_of(op));
}

std::optional<double> matmul_dram_share(const Machine& machine, const Op& op) {
  const auto found = machine.matmul_dram_shares.find(kernel_of(op));
  if (op.kind != OpKind::matmul || found == machine.matmul_dram_shares.end()) return std::nullopt;
  return share_at(found->second, rows_of(op));
}

}  // namespace dculab::sim

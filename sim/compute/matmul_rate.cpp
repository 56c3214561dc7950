#include "sim/compute/matmul_rate.hpp"

#include <algorithm>
#include <iterator>

namespace dculab::sim {
namespace {

[[nodiscard]] Dtype unpacked_as(Dtype stored) {
  return stored == Dtype::int2 || stored == Dtype::int3 ? Dtype::int4 : stored;
}

// Per weight.
[[nodiscard]] double time_at(const RateByRows::value_type& measured) {
  return measured.first / measured.second.value();
}

}  // namespace

FlopsPerSecond rate_at(const RateByRows& rates, double rows) {
  const auto above = std::find_if(rates.begin(), rates.end(), [rows](const auto& rate) { return rate.first >= rows; });
  if (above == rates.end()) return rates.rbegin()->second;
  if (above == rates.begin()) return FlopsPerSecond(rows / time_at(*above));
  const auto below = std::prev(above);
  const double share = (rows - below->first) / (above->first - below->first);
  return FlopsPerSecond(rows / (time_at(*below) + share * (time_at(*above) - time_at(*below))));
}

std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const Op& op) {
  const auto found = machine.matmul_rates.find({unpacked_as(op.weight_format.dtype), op.activations});
  if (found == machine.matmul_rates.end()) return std::nullopt;
  return rate_at(found->second, std::max(1.0, static_cast<double>(op.m)));
}

}  // namespace dculab::sim

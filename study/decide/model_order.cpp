#include "study/decide/model_order.hpp"

#include <algorithm>

#include "study/decide/preference.hpp"

namespace dculab::study {
namespace {

enum class Order : std::uint8_t { first_faster, none, second_faster };

[[nodiscard]] Order order_at(const ComparedModel& first, const ComparedModel& second, int batch) {
  const double ratio = first.step_time(batch) / second.step_time(batch);
  if (ratio > 1 + kPriceResolution) return Order::second_faster;
  return ratio < 1 / (1 + kPriceResolution) ? Order::first_faster : Order::none;
}

// The smallest batch above `low`, where the order is another, that has the order of `high`.
[[nodiscard]] int first_batch(const ComparedModel& first, const ComparedModel& second, int low, int high) {
  const Order wanted = order_at(first, second, high);
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (order_at(first, second, middle) == wanted ? high : low) = middle;
  }
  return high;
}

// Those of `batches` that both have room for, and the largest such.
[[nodiscard]] std::vector<int> fitting(std::span<const int> batches, std::int64_t room) {
  std::vector<int> result;
  for (const int batch : batches)
    if (batch <= room) result.push_back(batch);
  if (result.size() < batches.size() && room > 0 && (result.empty() || result.back() < room))
    result.push_back(static_cast<int>(room));
  return result;
}

void add_changes(const ComparedModel& first, const ComparedModel& second, std::span<const int> batches,
                 std::vector<OrderChange>& changes) {
  Order before = Order::none;
  int last = 0;  // the largest batch so far with the order `before`
  bool has_changed = false;
  const std::vector<int> tried = fitting(batches, std::min(first.max_sequences, second.max_sequences));
  for (const int batch : tried) {
    const Order now = order_at(first, second, batch);
    if (now == Order::none) continue;
    if (before != Order::none && now != before) {
      const bool is_first = now == Order::first_faster;
      if (has_changed) changes.back().last = last;
      has_changed = true;
      changes.push_back({(is_first ? first : second).name, (is_first ? second : first).name,
                         first_batch(first, second, last, batch), tried.back()});
    }
    before = now;
    last = batch;
  }
}

}  // namespace

std::vector<OrderChange> order_changes(std::span<const ComparedModel> models, std::span<const int> batches) {
  std::vector<OrderChange> changes;
  for (std::size_t first = 0; first < models.size(); ++first)
    for (std::size_t second = first + 1; second < models.size(); ++second)
      add_changes(models[first], models[second], batches, changes);
  std::ranges::stable_sort(changes, {}, &OrderChange::batch);
  return changes;
}

}  // namespace dculab::study

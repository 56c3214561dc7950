#include "engine/quantize/kv_calibration_fit.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "core/kv/kvquant.hpp"
#include "engine/quantize/calibration.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kLeastTokens = 256;
constexpr int kBins = 2048;
constexpr int kLloydRounds = 200;  // of k-means, which mostly stands still before
constexpr double kTail = 0.005;    // of a channel of K, on either side
constexpr int kNormalizedBits = 2;

// How much there is at each place in the range from -1 to 1.
class PlaceHistogram {
 public:
  void add(double place, double weight) {
    const auto bin = static_cast<std::ptrdiff_t>((std::clamp(place, -1.0, 1.0) + 1) / 2 * kBins);
    weights_[static_cast<std::size_t>(std::min<std::ptrdiff_t>(bin, kBins - 1))] += weight;
  }
  [[nodiscard]] std::span<const double> weights() const { return weights_; }

 private:
  std::vector<double> weights_ = std::vector<double>(kBins, 0.0);
};

// Marks the `count` largest of the distances.
void mark_outliers(std::span<const float> distances, int count, std::vector<std::size_t>& order,
                   std::vector<bool>& marked) {
  order.resize(distances.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::nth_element(order.begin(), order.begin() + count, order.end(),
                   [&](std::size_t a, std::size_t b) { return distances[a] > distances[b]; });
  marked.assign(distances.size(), false);
  for (int i = 0; i < count; ++i) marked[order[static_cast<std::size_t>(i)]] = true;
}

// The ranges of the channels of K.
void fit_ranges(const KvRows& rows, KvLayerCalibration& fitted) {
  const auto width = static_cast<std::size_t>(rows.width), tokens = rows.k.size() / width;
  const auto tail = static_cast<std::ptrdiff_t>(kTail * static_cast<double>(tokens));
  std::vector<float> channel(tokens);
  for (std::size_t c = 0; c < width; ++c) {
    for (std::size_t token = 0; token < tokens; ++token) channel[token] = rows.k[token * width + c];
    std::nth_element(channel.begin(), channel.begin() + tail, channel.end());
    const float least = channel[static_cast<std::size_t>(tail)];
    std::nth_element(channel.begin(), channel.end() - 1 - tail, channel.end());
    const float most = channel[tokens - 1 - static_cast<std::size_t>(tail)];
    fitted.centres.push_back((most + least) / 2);
    fitted.half_ranges.push_back((most - least) / 2);
  }
}

[[nodiscard]] double weight_at(const std::vector<float>& weights, std::size_t i) {
  return weights.empty() ? 1.0 : weights[i];
}

[[nodiscard]] PlaceHistogram places_of_k(const KvRows& rows, const KvLayerCalibration& fitted) {
  const auto width = static_cast<std::size_t>(rows.width);
  const int outliers = kvquant_outliers(rows.width);
  PlaceHistogram histogram;
  std::vector<float> places(width), distances(width);
  std::vector<std::size_t> order;
  std::vector<bool> is_outlier;
  for (std::size_t first = 0; first < rows.k.size(); first += width) {
    for (std::size_t c = 0; c < width; ++c) {
      const float half_range = fitted.half_ranges[c];
      places[c] = half_range > 0 ? (rows.k[first + c] - fitted.centres[c]) / half_range : 0.0F;
      distances[c] = std::abs(places[c]);
    }
    mark_outliers(distances, outliers, order, is_outlier);
    for (std::size_t c = 0; c < width; ++c)
      if (!is_outlier[c])
        histogram.add(places[c], weight_at(rows.fisher.k, first + c) * fitted.half_ranges[c] * fitted.half_ranges[c]);
  }
  return histogram;
}

[[nodiscard]] PlaceHistogram places_of_v(const KvRows& rows) {
  const auto width = static_cast<std::size_t>(rows.width);
  const int outliers = kvquant_outliers(rows.width);
  PlaceHistogram histogram;
  std::vector<float> distances(width);
  std::vector<std::size_t> order;
  std::vector<bool> is_outlier;
  for (std::size_t first = 0; first < rows.v.size(); first += width) {
    const std::span<const float> row(rows.v.data() + first, width);
    std::ranges::transform(row, distances.begin(), [](float value) { return std::abs(value); });
    mark_outliers(distances, outliers, order, is_outlier);
    float least = INFINITY, most = -INFINITY;
    for (std::size_t c = 0; c < width; ++c)
      if (!is_outlier[c]) least = std::min(least, row[c]), most = std::max(most, row[c]);
    const double centre = (double{most} + least) / 2, half_range = (double{most} - least) / 2;
    for (std::size_t c = 0; c < width && half_range > 0; ++c)
      if (!is_outlier[c])
        histogram.add((row[c] - centre) / half_range, weight_at(rows.fisher.v, first + c) * half_range * half_range);
  }
  return histogram;
}

[[nodiscard]] double middle_of(std::size_t bin, std::size_t bins) {
  return (2 * static_cast<double>(bin) + 1) / static_cast<double>(bins) - 1;
}

// Where equal shares of the weights lie.
[[nodiscard]] std::vector<double> quantiles(std::span<const double> weights, double total, int count) {
  std::vector<double> levels;
  double passed = 0;
  for (std::size_t bin = 0; bin < weights.size(); ++bin) {
    passed += weights[bin];
    while (std::ssize(levels) < count && passed >= total * (static_cast<double>(levels.size()) + 0.5) / count)
      levels.push_back(middle_of(bin, weights.size()));
  }
  levels.resize(static_cast<std::size_t>(count), 1.0);
  return levels;
}

// Moves each level to the mean of what is nearest to it. Whether one has moved.
bool move_levels(std::span<const double> weights, std::vector<double>& levels) {
  bool moved = false;
  std::size_t bin = 0;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const double end = level + 1 < levels.size() ? (levels[level] + levels[level + 1]) / 2 : 2;
    double sum = 0, weight = 0;
    for (; bin < weights.size() && middle_of(bin, weights.size()) <= end; ++bin)
      sum += weights[bin] * middle_of(bin, weights.size()), weight += weights[bin];
    if (weight == 0 || sum / weight == levels[level]) continue;
    levels[level] = sum / weight;
    moved = true;
  }
  return moved;
}

struct Moments {
  double weight = 0, sum = 0, squares = 0;
  void add(double value, double of_weight) {
    weight += of_weight, sum += of_weight * value, squares += of_weight * value * value;
  }
  [[nodiscard]] double mean() const { return sum / weight; }
  [[nodiscard]] double deviation() const { return std::sqrt(std::max(0.0, squares / weight - mean() * mean())); }
};

// Q-Norm.
void normalize(std::span<const double> weights, KvCodebook& book) {
  Moments places, levels;
  std::size_t code = 0;
  for (std::size_t bin = 0; bin < weights.size(); ++bin) {
    const double place = middle_of(bin, weights.size());
    while (code < book.bounds.size() && place > book.bounds[code]) ++code;
    places.add(place, weights[bin]), levels.add(book.levels[code], weights[bin]);
  }
  if (places.weight == 0 || levels.deviation() == 0) return;
  const double stretch = places.deviation() / levels.deviation();
  for (float& level : book.levels) level = static_cast<float>((level - levels.mean()) * stretch + places.mean());
}

void require_finite(const KvRows& rows, int layer) {
  for (const std::vector<float>* values : {&rows.k, &rows.v})
    if (!std::ranges::all_of(*values, [](float value) { return std::isfinite(value); }))
      throw InputError("the calibration text makes K or V of layer " + std::to_string(layer) +
                       " NaN or infinite; the weights are damaged");
}

}  // namespace

std::vector<float> fit_levels(std::span<const double> weights, int count) {
  double total = 0;
  for (const double weight : weights) total += weight;
  std::vector<double> levels(static_cast<std::size_t>(count));
  if (total > 0) {
    levels = quantiles(weights, total, count);
    for (int round = 0; round < kLloydRounds && move_levels(weights, levels); ++round) continue;
  } else {
    for (int level = 0; level < count; ++level) levels[static_cast<std::size_t>(level)] = 2.0 * level / (count - 1) - 1;
  }
  std::ranges::sort(levels);
  return {levels.begin(), levels.end()};
}

KvCodebook fit_codebook(std::span<const double> weights, int bits) {
  KvCodebook book{.levels = fit_levels(weights, 1 << bits), .bounds = {}};
  for (std::size_t i = 0; i + 1 < book.levels.size(); ++i)
    book.bounds.push_back((book.levels[i] + book.levels[i + 1]) / 2);
  if (bits == kNormalizedBits) normalize(weights, book);
  return book;
}

KvLayerCalibration fit_kv(const KvRows& rows) {
  KvLayerCalibration fitted;
  fit_ranges(rows, fitted);
  const PlaceHistogram k = places_of_k(rows, fitted), v = places_of_v(rows);
  for (std::size_t i = 0; i < kCalibratedBits.size(); ++i) {
    fitted.k[i] = fit_codebook(k.weights(), kCalibratedBits[i]);
    fitted.v[i] = fit_codebook(v.weights(), kCalibratedBits[i]);
  }
  return fitted;
}

KvCalibration calibrate_kv(const ModelWeights& weights, std::span<const TokenId> tokens, const KvCalibrationRun& run) {
  const ModelShape& shape = weights.shape;
  for (const LayerKind& kind : shape.kinds)
    if (!kind.has_kv_heads() || kind.gqa().shares_kv)
      throw InputError(shape.name + " has layers without K and V of their own");
  if (shape.quantization)
    throw InputError(shape.name + " is quantized; what the model it was made from is given serves it too");
  if (tokens.size() < kLeastTokens)
    throw InputError("the calibration text has " + std::to_string(tokens.size()) + " tokens, fewer than " +
                     std::to_string(kLeastTokens));
  Calibration calibration(widened_to_f32(weights), tokens, run.num_threads);
  KvCalibration result;
  for (int layer = 0; layer < shape.num_layers(); ++layer) {
    const Heads& heads = shape.layer(layer).gqa().heads;
    const auto query_width = static_cast<std::size_t>(heads.query_width());
    const auto width = static_cast<std::size_t>(heads.kv_width());
    KvRows rows{.width = heads.kv_width()};
    calibration.observe_qkv(layer, [&](const Op&, std::span<const float> qkv) {
      for (std::size_t row = query_width; row < qkv.size(); row += query_width + 2 * width) {
        const float* const k = qkv.data() + row;
        rows.k.insert(rows.k.end(), k, k + width);
        rows.v.insert(rows.v.end(), k + width, k + 2 * width);
      }
    });
    require_finite(rows, layer);
    if (!run.fisher.empty()) rows.fisher = load_kv_fisher(run.fisher, layer, tokens.size(), rows.width);
    result.layers.push_back(fit_kv(rows));
    calibration.advance(layer);
    if (run.on_progress) run.on_progress((layer + 1.0) / shape.num_layers());
  }
  return result;
}

}  // namespace dculab::engine

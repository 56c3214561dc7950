// What calibration text says of K and V, the file that holds it, and who asks for it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "core/error.hpp"
#include "core/kv/kvquant.hpp"
#include "engine/checkpoint/kv_calibration_file.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/kv/kv_storage.hpp"
#include "engine/quantize/kv_calibration_fit.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

double squared_error(std::span<const double> weights, const std::vector<float>& levels) {
  double error = 0;
  for (std::size_t bin = 0; bin < weights.size(); ++bin) {
    const double place = (2 * static_cast<double>(bin) + 1) / static_cast<double>(weights.size()) - 1;
    double least = 4;
    for (const float level : levels) least = std::min(least, (place - level) * (place - level));
    error += weights[bin] * least;
  }
  return error;
}

}  // namespace

TEST_CASE("levels of what is spread evenly are even, of what lies at a few places those places") {
  const std::vector<double> even(2048, 1.0);
  const std::vector<float> of_even = fit_levels(even, 8);
  for (int level = 0; level < 8; ++level)
    CHECK(std::abs(of_even[static_cast<std::size_t>(level)] - ((2 * level + 1) / 8.0 - 1)) <= 2.0 / 2048);
  std::vector<double> places(1000, 0.0);
  for (const std::size_t place : {100U, 450U, 500U, 990U}) places[place] = place == 500 ? 5 : 1;
  const std::vector<float> of_places = fit_levels(places, 4);
  CHECK(squared_error(places, of_places) <= 1e-12);
}

TEST_CASE("levels of a bell lie closer where there is more, with less error than even ones") {
  std::vector<double> bell(2048);
  for (std::size_t bin = 0; bin < bell.size(); ++bin)
    bell[bin] = std::exp(-0.5 * std::pow(3 * ((2 * static_cast<double>(bin) + 1) / 2048 - 1), 2));
  for (const int count : {4, 8, 16}) {
    std::vector<float> even;
    for (int level = 0; level < count; ++level)
      even.push_back(2 * static_cast<float>(level) / static_cast<float>(count - 1) - 1);
    const std::vector<float> fitted = fit_levels(bell, count);
    INFO(count);
    CHECK(std::ranges::is_sorted(fitted));
    CHECK(squared_error(bell, fitted) < 0.8 * squared_error(bell, even));
    const auto gap = [&](int i) {
      return fitted[static_cast<std::size_t>(i) + 1] - fitted[static_cast<std::size_t>(i)];
    };
    CHECK(gap(count / 2 - 1) < gap(0));
  }
}

TEST_CASE("levels of 2 bits have the mean and deviation of what they stand for, their codes are those of k-means") {
  std::vector<double> weights(2048);
  for (std::size_t bin = 0; bin < weights.size(); ++bin)
    weights[bin] = std::exp(-6 * std::pow((static_cast<double>(bin) - 800) / 1024, 2));
  const auto moments = [&](auto&& value_of) {
    double weight = 0, sum = 0, squares = 0;
    for (std::size_t bin = 0; bin < weights.size(); ++bin) {
      const double value = value_of((2 * static_cast<double>(bin) + 1) / 2048 - 1);
      weight += weights[bin], sum += weights[bin] * value, squares += weights[bin] * value * value;
    }
    return std::pair(sum / weight, std::sqrt(squares / weight - std::pow(sum / weight, 2)));
  };
  const auto of_codes = [&](const KvCodebook& book) {
    return moments([&](double place) {
      return book.levels[static_cast<std::size_t>(
          std::ranges::count_if(book.bounds, [&](float bound) { return place > bound; }))];
    });
  };
  const auto [mean, deviation] = moments([](double place) { return place; });
  for (const int bits : {2, 3}) {
    INFO(bits);
    const KvCodebook book = fit_codebook(weights, bits);
    const std::vector<float> plain = fit_levels(weights, 1 << bits);
    for (std::size_t i = 0; i < book.bounds.size(); ++i) CHECK(book.bounds[i] == (plain[i] + plain[i + 1]) / 2);
    const auto [coded_mean, coded_deviation] = of_codes(book);
    CHECK(std::abs(coded_mean - mean) < 1e-5);
    CHECK((std::abs(coded_deviation - deviation) < 1e-5) == (bits == 2));
    CHECK((book.levels == plain) == (bits == 3));
  }
}

TEST_CASE("Fisher weights draw the levels to where they are large") {
  KvRows rows{.width = 4};
  for (int token = 0; token < 2000; ++token)
    for (int channel = 0; channel < 4; ++channel) {
      rows.k.push_back(static_cast<float>((token * 37 + channel * 11) % 1000));
      rows.v.push_back(static_cast<float>((token * 53 + channel * 17) % 1000));
    }
  const KvLayerCalibration plain = fit_kv(rows);
  for (const float value : rows.k) rows.fisher.k.push_back(value > 800 ? 100.0F : 1.0F);
  rows.fisher.v.assign(rows.v.size(), 3.0F);
  const KvLayerCalibration weighted = fit_kv(rows);
  CHECK(weighted.half_ranges == plain.half_ranges);
  const auto above = [](const KvCodebook& book) {  // 0.6: at 800
    return std::ranges::count_if(book.levels, [](float level) { return level > 0.6F; });
  };
  CHECK(above(plain.k[0]) <= 4);
  CHECK(above(weighted.k[0]) >= 6);
  for (std::size_t i = 0; i < weighted.v.size(); ++i)  // all alike
    for (std::size_t level = 0; level < weighted.v[i].levels.size(); ++level)
      CHECK(std::abs(weighted.v[i].levels[level] - plain.v[i].levels[level]) < 1e-4);
}

TEST_CASE("a channel's range leaves half a per cent out on either side") {
  KvRows rows{.width = 2};
  for (int token = 0; token < 1001; ++token) {
    rows.k.insert(rows.k.end(), {static_cast<float>(token), token == 500 ? 1e6F : 3.0F});
    rows.v.insert(rows.v.end(), {1.0F, static_cast<float>(token % 7)});
  }
  const KvLayerCalibration fitted = fit_kv(rows);
  CHECK(fitted.centres == std::vector<float>{500, 3});
  CHECK(fitted.half_ranges == std::vector<float>{495, 0});
}

TEST_CASE("the shipped model's calibration is what its text says of it, and comes back from a file") {
  const ModelWeights weights = load_weights(kShippedModel);
  const std::shared_ptr<const KvCalibration> known = weights.kv_calibration();
  REQUIRE(known != nullptr);
  const KvCalibration made = calibrate_kv(weights, shipped_tokens("calibration.txt", 2048), {.num_threads = 2});
  REQUIRE(made.layers.size() == 4);
  const TemporaryFolder work;
  const fs::path folder = work.path("model");
  fs::create_directory(folder);
  write_kv_calibration(made, folder / kKvCalibrationFile);
  const auto read = load_kv_calibration(folder, weights.shape);
  REQUIRE(read != nullptr);
  CHECK(read->layers == made.layers);
  // Less text, nearly the same ranges.
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const auto& shipped = known->layers[layer];
    double difference = 0, size = 0;
    for (std::size_t c = 0; c < shipped.half_ranges.size(); ++c) {
      difference += std::abs(double{shipped.half_ranges[c]} - made.layers[layer].half_ranges[c]);
      size += shipped.half_ranges[c];
    }
    CHECK(difference < 0.2 * size);
  }
}

TEST_CASE("a calibration file of another model, or a damaged one, is refused by name") {
  const ModelWeights weights = load_weights(kShippedModel);
  const TemporaryFolder work;
  const fs::path folder = work.path("model"), file = folder / kKvCalibrationFile;
  fs::create_directory(folder);
  CHECK(load_kv_calibration(folder, weights.shape) == nullptr);
  const auto refused_with = [&](auto&& change, const char* text) {
    KvCalibration changed = *weights.kv_calibration();
    change(changed);
    fs::remove(file);
    write_kv_calibration(changed, file);
    CHECK_THROWS_WITH(load_kv_calibration(folder, weights.shape), ContainsSubstring(text));
  };
  refused_with([](KvCalibration& all) { all.layers.pop_back(); }, "has no tensor layers.3.k_centre");
  refused_with([](KvCalibration& all) { all.layers[1].centres.pop_back(); },
               "layers.1.k_centre must be F32 [256], not F32 [255]");
  refused_with([](KvCalibration& all) { all.layers[2].half_ranges[7] = NAN; },
               "layers.2.k_half_range holds what is not finite");
  refused_with([](KvCalibration& all) { std::ranges::reverse(all.layers[0].v[1].levels); },
               "layers.0.v_levels.3 does not ascend");
  refused_with([](KvCalibration& all) { all.layers[3].k[2].bounds[1] = 2; }, "layers.3.k_bounds.2 does not ascend");
}

TEST_CASE("Fisher weights come from a file, of the text that is calibrated on") {
  const TemporaryFolder work;
  const fs::path file = work.path("fisher.safetensors");
  const std::vector<float> k(12, 1.0F);
  const auto write = [&](const std::vector<float>& v) {
    fs::remove(file);
    std::vector<TensorToWrite> tensors;
    tensors.push_back({"layers.2.k_fisher", "F32", {3, 4}, std::as_bytes(std::span(k))});
    tensors.push_back({"layers.2.v_fisher", "F32", {3, 4}, std::as_bytes(std::span(v))});
    write_safetensors(file, std::move(tensors));
  };
  std::vector<float> v(12);
  std::iota(v.begin(), v.end(), 0.0F);
  write(v);
  CHECK(load_kv_fisher(file, 2, 3, 4).k == k);
  CHECK(load_kv_fisher(file, 2, 3, 4).v == v);
  CHECK_THROWS_WITH(load_kv_fisher(file, 1, 3, 4), ContainsSubstring("has no tensor layers.1.k_fisher"));
  CHECK_THROWS_WITH(load_kv_fisher(file, 2, 5, 4),
                    ContainsSubstring("layers.2.k_fisher must be F32 [5, 4], not F32 [3, 4]"));
  v[5] = -1;
  write(v);
  CHECK_THROWS_WITH(load_kv_fisher(file, 2, 3, 4), ContainsSubstring("layers.2.v_fisher holds what is negative"));
}

TEST_CASE("KVQuant's cache has the bytes that are predicted, and needs a calibration") {
  const ModelWeights weights = load_weights(kShippedModel);
  for (const Dtype dtype : {Dtype::kvquant4, Dtype::kvquant3, Dtype::kvquant2}) {
    INFO(name(dtype));
    KvCacheOptions options{.num_blocks = 3, .block_size = 8, .dtype = dtype};
    CHECK_THROWS_WITH(KvStorage(weights.shape, options),
                      ContainsSubstring("quantize --method none --kv-cache-dtype kvquant"));
    options.calibration = weights.kv_calibration();
    const KvStorage storage(weights.shape, options);
    // 4 layers of 256 channels: codes of K and V, 3 outliers of 4 bytes each, a scale of V.
    const double bytes = 8 * 4 * (2 * 256 * bits(dtype) / 8.0 + 2 * 3 * 4 + 4);
    CHECK(static_cast<double>(storage.bytes_per_block()) == bytes);
    CHECK((kv_bytes_per_token(weights.shape, dtype) * 8).value() == bytes);
  }
  ModelWeights none = weights;
  none.kv_calibration = nullptr;
  CHECK_THROWS_WITH(Stepper(none, {.kv_dtype = Dtype::kvquant4}),
                    ContainsSubstring("quantize --method none --kv-cache-dtype kvquant"));
  CHECK_THROWS_WITH(Stepper(weights, {.kv_dtype = Dtype::kvquant4, .division = {.tensor_parallel_size = 2}}),
                    ContainsSubstring("K and V of all heads"));
}

TEST_CASE("made-up weights have a made-up calibration") {
  ModelShape shape = load_weights(kShippedModel).shape;
  Stepper stepper(random_weights(shape, 1), {.kv_dtype = Dtype::kvquant2});
  const std::vector<Logits> logits = stepper.step({{0, Phase::prefill, {1, 2, 3, 4, 5}}});
  CHECK(std::ranges::all_of(logits.at(0), [](float value) { return std::isfinite(value); }));
}

}  // namespace dculab::engine

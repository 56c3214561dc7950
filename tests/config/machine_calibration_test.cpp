// What a calibration leaves in a machine file, written and read back.
#include <optional>
#include <string>

#include "config/machine_file.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

sim::Machine calibrated_z100() {
  sim::Machine machine = read_machine_file(DCULAB_SOURCE_DIR "/hwmodels/z100.yaml");
  machine.calibration =
      sim::Calibration{40, 0.9, 1.0 + 1.0 / 7.0, {{"batch", {1, 32}}, {"log2 context", {-0.5, 13.1}}}};
  return machine;
}

TEST_CASE("a calibration is written and read back") {
  sim::Machine machine = calibrated_z100();
  const sim::Machine again = read_machine("again", machine_yaml(machine));
  REQUIRE(again.calibration.has_value());
  CHECK(again.calibration->held_out_steps == 40);
  CHECK(again.calibration->coverage == 0.9);
  CHECK(again.calibration->interval_factor == 1.0 + 1.0 / 7.0);
  REQUIRE(again.calibration->domain.size() == 2);
  CHECK(again.calibration->domain.at("log2 context").low == -0.5);
  CHECK(again.calibration->domain.at("log2 context").high == 13.1);
  CHECK_FALSE(again.calibration->formats);  // as in files that were written before formats were kept
  machine.calibration->domain.clear();
  CHECK(read_machine("again", machine_yaml(machine)).calibration->domain.empty());
}

TEST_CASE("the formats that a calibration saw are written and read back, and wrong ones are named") {
  sim::Machine machine = calibrated_z100();
  machine.calibration->formats =
      sim::SeenFormats{.weights = {Dtype::f16, Dtype::int4},
                       .activations = {ActivationMode::exact, ActivationMode::int8},
                       .kv_cache = {Dtype::kivi4},
                       .kv_retention = {RetentionPolicy::all, RetentionPolicy::heavy_hitters}};
  std::string yaml = machine_yaml(machine);
  const std::optional<sim::SeenFormats> formats = read_machine("again", yaml).calibration->formats;
  REQUIRE(formats);
  CHECK(formats->weights == machine.calibration->formats->weights);
  CHECK(formats->activations == machine.calibration->formats->activations);
  CHECK(formats->kv_cache == machine.calibration->formats->kv_cache);
  CHECK(formats->kv_retention == machine.calibration->formats->kv_retention);
  yaml.replace(yaml.find("heavy_hitters"), 13, "heavy_hitter");
  CHECK_THROWS_WITH(read_machine("again", yaml),
                    ContainsSubstring("calibration.formats: 'heavy_hitter' is not known; did you mean"));
  yaml.replace(yaml.find("[kivi4]"), 7, "kivi4");
  CHECK_THROWS_WITH(read_machine("again", yaml), ContainsSubstring("calibration.formats.kv_cache_dtype"));
}

TEST_CASE("intervals that points taught are written and read back, and wrong ones are named") {
  sim::Machine machine = read_machine_file(DCULAB_SOURCE_DIR "/hwmodels/z100.yaml");
  sim::PointIntervals intervals{.rows = 12, .factors = {}};
  for (const auto& [name, kind] : sim::kPriceKinds) intervals.factors[kind] = 1.0 + 1.0 / 7.0;
  machine.calibration.emplace().intervals = {{"all", intervals}, {"vLLM: \"dtk\"", intervals}};
  std::string yaml = machine_yaml(machine);
  const sim::Machine again = read_machine("again", yaml);
  REQUIRE(again.calibration);
  REQUIRE(again.calibration->intervals.size() == 2);
  const sim::PointIntervals& read = again.calibration->intervals.at("vLLM: \"dtk\"");
  CHECK(read.rows == 12);
  CHECK(read.factors == intervals.factors);
  yaml.replace(yaml.find("product: 1"), 10, "product: 0");
  CHECK_THROWS_WITH(read_machine("again", yaml), ContainsSubstring("calibration.intervals.all.product"));
}

}  // namespace
}  // namespace dculab::config

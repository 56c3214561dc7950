// Settings of an engine: what they serve, and where an answer turns. A machine whose only law is
// bandwidth gives answers that can be counted by hand.
#include "sim/study/serving_setting.hpp"

#include "sim/memory/capacity.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

ServingCase llama_on(const Machine& machine) {
  ServingCase serving{
      machine, llama_3_8b(), {}, {.prompt_tokens = 1000, .output_tokens = 200, .sequences = {}, .tpot = {}}};
  serving.options.weights = {Dtype::int4, 128};
  return serving;
}

Setting own_of(const ServingCase& serving) {
  Setting setting;
  setting.kv_heads = serving.model.kinds[0].gqa().heads.num_key_value_heads;
  return setting;
}

TEST_CASE("a flip is the nearest value where an answer no longer holds, on either side") {
  for (const int from : {13, 14, 40, 99, 100}) {
    const Flips flips = nearest_flips(from, 1, 1000, [](int at) { return at >= 13 && at <= 100; });
    INFO(from);
    CHECK(flips.below == 12);
    CHECK(flips.above == 101);
  }
  const Flips none = nearest_flips(5, 1, 1000, [](int) { return true; });
  CHECK_FALSE(none.below);
  CHECK_FALSE(none.above);
}

TEST_CASE("the batch is the largest that meets what is asked for") {
  ServingCase serving = llama_on(mi50_like());
  const Setting setting = own_of(serving);
  serving.load.sequences = 7;
  CHECK(serve(serving, setting).batch == 7);
  CHECK(serve(serving, setting).limit == SequenceLimit::asked_for);

  serving.load.sequences = 100'000;
  const Served full = serve(serving, setting);
  CHECK(full.limit == SequenceLimit::memory);
  CHECK(served_rate(serving.machine, serving, setting, full.batch) == Approx(full.output_tokens_per_second));
  CHECK(served_rate(serving.machine, serving, setting, full.most) > 0);
  CHECK(served_rate(serving.machine, serving, setting, full.most + 1) == 0);
  CHECK(full.batch == full.most / batch_step(full.most) * batch_step(full.most));

  serving.load.tpot = full.tpot * 0.5;
  const Served limited = serve(serving, setting);
  CHECK(limited.limit == SequenceLimit::tpot);
  CHECK(limited.tpot <= *serving.load.tpot);
  CHECK(limited.batch == limited.most / batch_step(limited.most) * batch_step(limited.most));
  serving.load.sequences = limited.most + 1;
  serving.load.tpot = {};
  CHECK(serve(serving, setting).tpot > full.tpot * 0.5);
}

TEST_CASE("without limits the batch is the smallest multiple of 8 that serves 95 % of the most") {
  ServingCase serving = llama_on(mi50_like());
  const Setting setting = own_of(serving);
  const Served knee = serve(serving, setting);
  CHECK(knee.limit == SequenceLimit::gain);
  serving.load.sequences = kMostSequences;
  const double most = serve(serving, setting).output_tokens_per_second;
  CHECK(knee.output_tokens_per_second >= kKneeShare * most);
  CHECK(knee.batch % kBatchStep == 0);
  CHECK(served_rate(serving.machine, serving, setting, knee.batch - kBatchStep) < kKneeShare * most);
}

TEST_CASE("more sequences than meet TPOT can be asked for") {
  ServingCase serving = llama_on(mi50_like());
  const Setting setting = own_of(serving);
  serving.load.sequences = 100;
  serving.load.tpot = serve(serving, setting).tpot * 0.5;
  const Served limited = serve(serving, setting);
  REQUIRE(limited.limit == SequenceLimit::tpot);
  CHECK(limited.room > limited.most);
  const Served more = serve_with(serving, setting, limited.room);
  CHECK(more.limit == SequenceLimit::waits);
  CHECK(more.batch == limited.room);
  CHECK(more.tpot > *serving.load.tpot);
  CHECK(more.output_tokens_per_second == served_rate(serving.machine, serving, setting, limited.room));
}

TEST_CASE("limits of sequences are set in steps that give up no more than a ninth") {
  for (const auto& [batch, step] : {std::pair{1, 1}, {15, 1}, {16, 2}, {31, 2}, {32, 4}, {63, 4}, {64, 8}, {1024, 8}})
    CHECK(batch_step(batch) == step);
  for (int batch = 1; batch <= kMostSequences; ++batch) CHECK(9 * (batch % batch_step(batch)) <= batch);
}

TEST_CASE("what cannot fit and what cannot be fast enough serve nothing, and say which") {
  ServingCase serving = llama_on(mi50_like());
  serving.load.tpot = Seconds(1e-9);
  CHECK(serve(serving, own_of(serving)).batch == 0);
  CHECK(serve(serving, own_of(serving)).limit == SequenceLimit::tpot);
  CHECK(serve(serving, own_of(serving)).tpot > Seconds(1e-3));  // of one sequence
  serving.machine.memory.back().size = 4 * kGiB;
  CHECK(serve(serving, own_of(serving)).batch == 0);
  CHECK(serve(serving, own_of(serving)).limit == SequenceLimit::memory);
}

TEST_CASE("where memory alone limits, half the KV bytes serve twice as many at a time") {
  ServingCase serving = llama_on(mi50_like());
  serving.load = {.prompt_tokens = 4000, .output_tokens = 4000, .sequences = 1024, .tpot = {}};
  const Setting half = own_of(serving);
  Setting quarter = half;
  quarter.kv_cache_dtype = Dtype::fp8_e4m3;
  const Served wide = serve(serving, half), narrow = serve(serving, quarter);
  REQUIRE(narrow.limit == SequenceLimit::memory);
  CHECK(narrow.most == Approx(2.0 * wide.most).margin(2));
}

}  // namespace
}  // namespace dculab::sim::test

// Steps found in streams of kernels whose times are known.
#include "config/profile/step_import.hpp"

#include "config/profile/step_search.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

ModelShape imported_model(int layers = 3) {
  ModelShape model;
  model.name = "small";
  model.hidden_size = 256;
  model.kinds[0].mlp.intermediate_size = 768;
  model.layers.assign(layers, 0);
  model.kinds[0].gqa().heads = {8, 8, 32};
  model.vocab_size = 2048;
  model.max_position_embeddings = 1024;
  return model;
}

// Kernels one behind the other, 1 us apart; each takes as many ns as said.
class Stream {
 public:
  Stream& add(const std::string& name, std::int64_t ns = 1000) {
    profile_.kernels.push_back({.line = 0, .name = name, .device = "", .begin_ns = now_, .end_ns = now_ + ns});
    now_ += ns + 1000;
    return *this;
  }

  // A layer as vLLM runs it, but for `attention`.
  Stream& layer(const std::string& attention = "paged_attention_v1_kernel") {
    return add("rms_norm_kernel")
        .add("gemm", 2000)
        .add("rotary_embedding_kernel")
        .add("reshape_and_cache_kernel")
        .add(attention, 5000)
        .add("gemm", 3000)
        .add("rms_norm_kernel")
        .add("gemm", 7000)
        .add("act_and_mul_kernel")
        .add("gemm", 4000);
  }

  Stream& step(int layers = 3, const std::string& attention = "paged_attention_v1_kernel") {
    add("embedding_kernel");
    for (int count = 0; count < layers; ++count) layer(attention);
    return add("rms_norm_kernel").add("gemm", 9000);
  }

  [[nodiscard]] const Profile& profile() {
    profile_.file = "p.csv";
    return profile_;
  }

 private:
  Profile profile_;
  std::int64_t now_ = 1'000'000;
};

ProfiledWork decode_work(int layers = 3) {
  ProfiledWork work;
  work.model = imported_model(layers);
  work.context = 100;
  work.growth = 1;
  return work;
}

std::size_t steps_in(const Profile& profile, const ProfiledWork& work) {
  return find_steps(profile.kernels, plan_step(work.model, work.options, uniform_batch(work.phase, 1, 100)),
                    work.model.layers)
      .size();
}

std::string refusal_of_import(const Profile& profile, const ProfiledWork& work, const ImportChoices& choices = {}) {
  try {
    static_cast<void>(import_steps(profile, work, choices));
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

double microseconds(const TraceStep& row, std::string_view op) {
  for (std::size_t index = 0; index < row.op_names.size(); ++index)
    if (row.op_names[index] == op) return row.op_durations[index].value() * 1e6;
  FAIL("no op " << op);
  return 0;
}

TEST_CASE("matmuls are told by their place in the layer") {
  const ImportedSteps imported = import_steps(Stream().step().profile(), decode_work(), {});
  REQUIRE(imported.rows.size() == 1);
  const TraceStep& row = imported.rows.front();
  CHECK(microseconds(row, "qkv_proj") == Approx(3 * 2));
  CHECK(microseconds(row, "o_proj") == Approx(3 * 3));
  CHECK(microseconds(row, "gate_up_proj") == Approx(3 * 7));
  CHECK(microseconds(row, "down_proj") == Approx(3 * 4));
  CHECK(microseconds(row, "lm_head") == Approx(9));
  CHECK(microseconds(row, "rope_and_cache") == Approx(3 * 2));
  CHECK(microseconds(row, "attention_decode") == Approx(3 * 5));
  // 33 kernels, 32 gaps of 1 us between them.
  CHECK(row.duration.value() * 1e6 == Approx(1 + 3 * 26 + 1 + 9 + 32));
  CHECK(imported.summary.op_kernels == 33);
  CHECK(imported.summary.other_share() == 0);
}

TEST_CASE("an op may be several kernels, and kernels that serve no op may stand anywhere") {
  Stream stream;
  stream.add("embedding_kernel");
  for (int layer = 0; layer < 3; ++layer) {
    stream.add("rms_norm_kernel")
        .add("scaled_int8_quant")
        .add("gemm_q")
        .add("gemm_k")
        .add("hipMemcpy", 10)
        .add("gemm_v");
    stream.add("reshape_and_cache_kernel").add("paged_attention_v2_kernel").add("paged_attention_v2_reduce_kernel");
    stream.add("gemm").add("splitKreduce_kernel").add("rms_norm_kernel").add("gemm").add("mystery", 20).add("gemm");
    stream.add("silu_and_mul_kernel").add("gemm");
  }
  stream.add("rms_norm_kernel").add("indexSelectLargeIndex", 30).add("gemm");
  const ImportedSteps imported = import_steps(stream.profile(), decode_work(), {});
  const TraceStep& row = imported.rows.front();
  CHECK(microseconds(row, "qkv_proj") == Approx(3 * 4));
  CHECK(microseconds(row, "attention_decode") == Approx(3 * 2));
  CHECK(microseconds(row, "o_proj") == Approx(3 * 2));
  CHECK(microseconds(row, "gate_up_proj") == Approx(3 * 2));
  CHECK(imported.summary.other_kernels == 7);
  CHECK(imported.summary.other_time.value() * 1e9 == Approx(3 * 10 + 3 * 20 + 30));
  REQUIRE(imported.summary.others.size() == 3);
  CHECK(imported.summary.others.front().name == "mystery");
  CHECK(imported.summary.others.front().count == 3);
}

TEST_CASE("embedding and rope_and_cache may be fused away; their time is then 0") {
  Stream stream;
  for (int step = 0; step < 2; ++step) {
    for (int layer = 0; layer < 3; ++layer)
      stream.add("rms_norm_kernel")
          .add("gemm")
          .add("fmha_with_rope")
          .add("gemm")
          .add("rms_norm_kernel")
          .add("gemm")
          .add("silu_and_mul_kernel")
          .add("gemm");
    stream.add("rms_norm_kernel").add("gemm");
  }
  const ImportedSteps imported = import_steps(stream.profile(), decode_work(), {});
  CHECK(imported.summary.steps_found == 2);
  CHECK(microseconds(imported.rows.front(), "embed_tokens") == 0);
  CHECK(microseconds(imported.rows.front(), "rope_and_cache") == 0);
  CHECK(imported.summary.kernels_per_step[0] == 0);
  CHECK_FALSE(imported.summary.phase_is_told);
}

TEST_CASE("a model of another depth matches nowhere, with or without an embedding") {
  for (const int layers : {1, 2, 4, 6}) {
    INFO(layers);
    CHECK(steps_in(Stream().step().step().profile(), decode_work(layers)) == 0);
    Stream bare;
    for (int step = 0; step < 2; ++step) bare.layer().layer().layer().add("rms_norm_kernel").add("gemm");
    CHECK(steps_in(bare.profile(), decode_work(layers)) == 0);
    CHECK(steps_in(bare.profile(), decode_work(3)) == 2);
  }
  CHECK_THAT(refusal_of_import(Stream().step().profile(), decode_work(4)),
             ContainsSubstring("p.csv: no whole step of small (4 layers, 12 ops) among 33 kernels (activation 3, "
                               "attention_decode 3, embedding 1, matmul 13, norm 7, rope_and_cache 6); give the "
                               "profiled --model and --phase, or record more steps."));
}

TEST_CASE("half steps at both ends are left out") {
  Stream stream;
  stream.layer().add("rms_norm_kernel").add("gemm").step().step().add("embedding_kernel").layer();
  const ImportedSteps imported = import_steps(stream.profile(), decode_work(), {});
  CHECK(imported.summary.steps_found == 2);
  CHECK(imported.summary.outside_kernels == 12 + 11);
}

TEST_CASE("steps of the other phase are told by their attention") {
  Stream stream;
  stream.step(3, "prefill_attention_kernel").step().step();
  CHECK(steps_in(stream.profile(), decode_work()) == 2);
  ProfiledWork prefill = decode_work();
  prefill.phase = Phase::prefill;
  CHECK(steps_in(stream.profile(), prefill) == 1);
}

TEST_CASE("a period reaches to the next step and counts what stands between; the last step has none") {
  Stream stream;
  for (int step = 0; step < 3; ++step) stream.step().add("argmax_kernel", 4000);
  ImportChoices choices;
  choices.time = StepTime::period;
  const ImportedSteps imported = import_steps(stream.profile(), decode_work(), choices);
  CHECK(imported.summary.steps_imported == 2);
  CHECK(imported.rows.front().repeats == 2);
  CHECK(imported.rows.front().duration.value() * 1e6 == Approx(1 + 3 * 26 + 1 + 9 + 33 + 4 + 1));
  CHECK(imported.summary.other_kernels == 2);
  CHECK_THAT(refusal_of_import(Stream().step().profile(), decode_work(), choices),
             ContainsSubstring("p.csv: 1 whole step, none with another right behind it"));
}

TEST_CASE("a row is the median of its steps, at the context of the middle one") {
  Stream stream;
  for (const int slower : {0, 1000, 5000, 2000, 3000}) {
    stream.add("embedding_kernel", 1000 + slower);
    stream.layer().layer().layer().add("rms_norm_kernel").add("gemm", 9000);
  }
  const ImportedSteps all = import_steps(stream.profile(), decode_work(), {});
  REQUIRE(all.rows.size() == 1);
  CHECK(all.rows[0].repeats == 5);
  CHECK(microseconds(all.rows[0], "embed_tokens") == Approx(3));
  CHECK(all.rows[0].spread.value() * 1e6 == Approx(1));  // quartiles 1 us and 3 us above the fastest
  CHECK(all.rows[0].batch.sequences.front().context_tokens() == 102);
  CHECK(all.rows[0].id == "decode kv_heads=8 block=16 kv=f16 context=102 batch=1");

  ImportChoices choices;
  choices.skip_steps = 1;
  choices.steps = 3;
  choices.steps_per_row = 2;
  const ImportedSteps rows = import_steps(stream.profile(), decode_work(), choices);
  REQUIRE(rows.rows.size() == 2);
  CHECK(rows.rows[0].batch.sequences.front().context_tokens() == 100);
  CHECK(microseconds(rows.rows[0], "embed_tokens") == Approx(4));
  CHECK(rows.rows[1].batch.sequences.front().context_tokens() == 102);
  CHECK(rows.rows[1].repeats == 1);
  CHECK(rows.summary.outside_kernels == 2 * 33);
}

TEST_CASE("a prefill may be a chunk of its context") {
  ProfiledWork work = decode_work();
  work.phase = Phase::prefill;
  work.batch = 2;
  work.context = 300;
  work.new_tokens = 100;
  work.growth = 0;
  const ImportedSteps imported = import_steps(Stream().step(3, "_fwd_kernel").profile(), work, {});
  const Batch& batch = imported.rows.front().batch;
  REQUIRE(batch.sequences.size() == 2);
  CHECK(batch.sequences[1].num_new_tokens == 100);
  CHECK(batch.sequences[1].num_computed_tokens == 200);
}

TEST_CASE("what cannot be known is refused") {
  Stream stream;
  stream.step().step(3, "prefill_attention_kernel").step();
  CHECK_THAT(refusal_of_import(stream.profile(), decode_work()),
             ContainsSubstring("another kind of step stands between whole steps 1 and 2"));
  ProfiledWork constant = decode_work();
  constant.growth = 0;
  CHECK(refusal_of_import(stream.profile(), constant) == "accepted");
  ImportChoices skip;
  skip.skip_steps = 2;
  CHECK(refusal_of_import(stream.profile(), constant, skip) == "--skip-steps 2: p.csv holds 2 whole steps; skip fewer");

  Stream many;
  for (int step = 0; step < 5; ++step) many.step();
  ProfiledWork longest = decode_work();
  longest.context = 1023;
  CHECK_THAT(refusal_of_import(many.profile(), longest), ContainsSubstring("grows to 1025 tokens, more than"));
}

TEST_CASE("too much time that serves no op is refused") {
  Stream stream;
  stream.add("embedding_kernel")
      .layer()
      .add("my_fused_everything", 30000)
      .layer()
      .layer()
      .add("rms_norm_kernel")
      .add("gemm", 9000);
  CHECK(refusal_of_import(stream.profile(), decode_work()) ==
        "p.csv: 1 kernels that serve no op take 25.2 % of the steps' kernel time, more than 10.0 % (the longest: "
        "my_fused_everything (1, 25.2 %)); compare the names with dculab import --list-kernels, give one an op with "
        "--kernel-name PART=OP, or allow more with --max-other");
  ImportChoices lenient;
  lenient.most_other = 0.3;
  CHECK(refusal_of_import(stream.profile(), decode_work(), lenient) == "accepted");
}

}  // namespace
}  // namespace dculab::config

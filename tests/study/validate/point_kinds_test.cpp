// One point of each kind and column, with its price by hand from the machine's figures.
#include <algorithm>
#include <cmath>

#include "sim/cost/step_price.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/validation.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kColumns =
    "id,kind,machine,devices,software,model,weights,kv_block_size,batch,prompt_tokens,output_tokens,context_tokens,m,n,"
    "k,"
    "heads,kv_heads,head_size,value,unit,clock,kernel,source\n";

Scores scores_of(const std::string& rows) {
  const files::test::TemporaryFolder folder;
  return validate_points({folder.write("points.csv", kColumns + rows)}).scores;
}

double predicted_value(const std::string& row) {
  const Scores scores = scores_of("a," + row + ",a test\n");
  REQUIRE(scores.rows.size() == 1);
  return scores.rows[0].predicted;
}

// The reason of a row that has no price, beside one that has.
std::string unpriced(const std::string& row) {
  const Scores scores = scores_of("a," + row + ",a test\nb,launch_overhead,mi210,1,,,,,,,,,,,,,,,1,s,,,a test\n");
  REQUIRE(scores.unpriced.size() == 1);
  return scores.unpriced[0].reason;
}

TEST_CASE("points of the hardware are its figures") {
  const sim::Machine mi210 = resolve_machine("mi210");
  const double dram = 1e-9 * mi210.dram().bandwidth.value() * mi210.sustained.dram_bandwidth;
  const double l2 = 1e-9 * mi210.memory[1].bandwidth.value() * mi210.sustained.cache_bandwidth;
  const double launch = mi210.overheads.kernel_launch.value();
  CHECK(predicted_value("copy_bandwidth,mi210,1,any,,,,,,,,,,,,,,100,GB/s,,") == Approx(dram).epsilon(1e-3));
  CHECK(predicted_value("copy_bandwidth,mi210,1,any,,,,,,,,1000000000,,,,,,100,GB/s,,") ==
        Approx(1 / (launch + 1 / dram)).epsilon(1e-3));
  CHECK(predicted_value("cache_bandwidth,mi210,1,,,,,,,,,1048576,,,,,,100,GB/s,,") == Approx(l2).epsilon(1e-2));
  CHECK(predicted_value("cache_latency,mi210,1,,,,,,,,,524288,,,,,,1,s,,") ==
        Approx(mi210.memory[1].latency.value()).epsilon(1e-2));
  CHECK(predicted_value("launch_overhead,mi210,1,hipGraph,,,,,,,,,,,,,,1,s,,") == Approx(launch));
  CHECK(predicted_value("peak_rate,mi210,1,,,fp16,,,,,,,,,,,,1,FLOP/s,,") ==
        Approx(mi210.peaks.at(Dtype::f16).matrix->value()));
  CHECK(predicted_value("peak_rate,mi210,1,,,,,,,,,,,,,,,1,FLOP/s,,") ==
        Approx(mi210.peaks.at(Dtype::f32).matrix->value()));
  CHECK_THAT(unpriced("peak_rate,mi210,1,,,,,,,,,,,,,,,1,OP/s,,"), ContainsSubstring("column weights is missing"));
  CHECK_THAT(unpriced("cache_latency,mi210,1,,,,,,,,,,,,,,,1,s,,"), ContainsSubstring("column m is missing"));
}

TEST_CASE("a call that was timed alone takes its own time too, and a host's is not the device's") {
  const files::test::TemporaryFolder folder;
  const std::string row = ",launch_overhead,bw1000,1,8e-6,s,a test,";
  const Scores scores =
      validate_points({folder.write("points.csv", "id,kind,machine,devices,value,unit,source,notes\na" + row + "\nb" +
                                                      row + "event-timed\nc" + row + "host wall time of one call\n")})
          .scores;
  REQUIRE(scores.rows.size() == 2);
  const Seconds call = resolve_machine("bw1000").overheads.timed_call;
  CHECK(scores.rows[1].predicted - scores.rows[0].predicted == Approx(call.value()));
  REQUIRE(scores.unpriced.size() == 1);
  CHECK_THAT(scores.unpriced[0].reason, ContainsSubstring("host"));
}

TEST_CASE("an all_reduce is the exchange of its library") {
  sim::Machine machine = resolve_machine("bw1000");
  machine.stack = resolve_stack("vllm-dtk", machine);  // by RCCL too
  Op op;
  op.kind = OpKind::all_reduce;
  op.devices = 8;
  op.add({OperandRole::output, Bytes(1 << 26), {}});
  CHECK(predicted_value("all_reduce,bw1000,8,RCCL,,,,,,,,67108864,,,,,,1,s,,") ==
        Approx(sim::price_op(machine, {}, op, {}).seconds.value()));
  CHECK_THAT(unpriced("all_reduce,bw1000,1,RCCL,,,,,,,,67108864,,,,,,1,s,,"), ContainsSubstring("at least 2 devices"));
  const std::string sent = "copy_bandwidth,bw1000,2,RCCL,,,,,,,,1000000000,,,,,,1,GB/s,,";
  const double link = 1e-9 * machine.peer_link->value() * machine.sustained.peer_link;
  CHECK(predicted_value(sent) == Approx(link).epsilon(0.01));
}

TEST_CASE("requests in a closed loop come one after the other") {
  const std::string ends = ",mi210,1,vLLM,llama-3-8b,fp16,,1,512,64,,,,,,,,1,";
  const double request = predicted_value("request_latency" + ends + "s,,");
  CHECK(predicted_value("serving_output_rate" + ends + "tokens/s,,") == Approx(64 / request).epsilon(0.02));
}

TEST_CASE("a clock moves what follows it, a kernel is the one that runs") {
  const auto product = [](const std::string& clock) {
    return predicted_value("matmul,bw1000,1,rocBLAS,,fp16,,,,,,8192,8192,8192,,,,1,s," + clock + ",");
  };
  CHECK(product("default") == product(""));
  CHECK(product("1550 MHz") < 0.96 * product(""));
  CHECK_THAT(unpriced("matmul,bw1000,1,rocBLAS,,fp16,,,,,,64,64,64,,,,1,s,fast,"), ContainsSubstring("clock"));
  const auto decode = [](const std::string& kernel) {
    return predicted_value("attention_decode,bw1000,1,Triton UA,,,784,1,,,4096,,,,24,4,256,1,s,," + kernel);
  };
  CHECK(decode("triton_unified_attention_3d") == decode(""));
  CHECK(decode("triton_unified_attention_3d block_m=16 tile=16") == decode(""));
  CHECK(decode("triton_unified_attention_3d block_m=64") > decode(""));
  CHECK(decode("triton_unified_attention_2d") != decode(""));
  const auto refused = [](const std::string& kernel) {
    return unpriced("attention_decode,bw1000,1,Triton UA,,,784,1,,,4096,,,,24,4,256,1,s,," + kernel);
  };
  CHECK_THAT(refused("no_such_kernel"), ContainsSubstring("no kernel 'no_such_kernel'"));
  CHECK_THAT(refused("triton_unified_attention_3d block_q=16"), ContainsSubstring("no parameter 'block_q'"));
  CHECK_THAT(refused("triton_unified_attention_3d block_m=17"), ContainsSubstring("has no block_m=17"));
  CHECK_THAT(refused("triton_unified_attention_3d block_m"), ContainsSubstring("no parameter 'block_m'"));
}

TEST_CASE("a prompt may be the rest of a longer context") {
  const auto prefill = [](const std::string& context) {
    return predicted_value("attention_prefill,mi210,1,,,,,1,4096,," + context + ",,,,32,8,128,1,s,,");
  };
  CHECK(prefill("4096") == prefill(""));
  CHECK(prefill("12288") > 3 * prefill(""));  // 4096 x 10240 pairs on average, not 4096 x 2048
}

TEST_CASE("what has no price yet says why") {
  CHECK_THAT(unpriced("fused_moe,bw1000,1,vLLM,,bf16,,,,,,64,14336,4096,,,,1,s,,"), ContainsSubstring("E=8 top-k=2"));
  CHECK_THAT(unpriced("fused_moe,bw1000,1,RCCL,,bf16,,,,,,64,14336,4096,,,,1,s,,"),
             ContainsSubstring("no kernel of a mixture of experts of RCCL"));
  CHECK_THAT(unpriced("ttft,mi300x,1,rocBLAS,llama-3-8b,fp16,,,512,,,,,,,,,1,s,,"),
             ContainsSubstring("kernel library"));
  CHECK_THAT(unpriced("matmul,mi300x,1,RCCL,,fp16,,,,,,64,64,64,,,,1,s,,"), ContainsSubstring("no matmul of RCCL"));
  CHECK_THAT(unpriced("matmul,mi300x,1,Another,,fp16,,,,,,64,64,64,,,,1,s,,"), ContainsSubstring("'Another'"));
}

TEST_CASE("every row of the second file is predicted, or says why not", "[once]") {
  const Scores scores = validate_points({DCULAB_SOURCE_DIR "/tests/data/measured_points_2.csv"}).scores;
  CHECK(scores.rows.size() + scores.refused.size() + scores.unpriced.size() == 1709);
  CHECK(scores.rows.size() >= 1590);
  const auto because_of = [&](const std::string& words) {
    return std::ranges::count_if(scores.unpriced,
                                 [&](const LeftOutRow& row) { return row.reason.find(words) != std::string::npos; });
  };
  CHECK(because_of("fused_moe") == 0);
  CHECK(because_of("deepseek-v4-flash") == 0);
  CHECK(because_of("no machine") == 6);
  for (const ScoredRow& row : scores.rows) CHECK(std::isfinite(row.predicted));
}

}  // namespace
}  // namespace dculab::study

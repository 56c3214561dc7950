#include "config/points_file.hpp"

#include <string>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

const std::string kHeader =
    "id,kind,machine,devices,software,model,weights,kv_dtype,kv_block_size,batch,prompt_tokens,output_tokens,"
    "context_tokens,m,n,k,heads,kv_heads,head_size,value,unit,source,notes\n";
const std::string kDecode =
    "decode-1,decode_rate,mi50,1,llama.cpp,Llama-3.1-8B,Q4_0,f16,,1,0,128,128,,,,,,,70.5,tokens/s,a page,\"a, "
    "\"\"b\"\"\"\n";
const std::string kMatmul = "mm-1,matmul,a100-80gb-sxm,1,,,fp16,,,1,,,,64,4096,11008,,,,6.5e-05,s,a file,\r\n";

std::string refusal_of_points(const std::string& text) {
  try {
    static_cast<void>(read_points("p.csv", text));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("points are read, empty cells are absent") {
  const std::vector<PublishedPoint> points = read_points("p.csv", kHeader + kDecode + "\n" + kMatmul);
  REQUIRE(points.size() == 2);
  CHECK(points[0].kind == PointKind::decode_rate);
  CHECK(points[0].value == 70.5);
  CHECK(points[0].prompt_tokens == 0);
  CHECK_FALSE(points[0].kv_block_size.has_value());
  CHECK(points[0].notes == "a, \"b\"");
  CHECK(points[1].line == 4);
  CHECK(points[1].k == 11008);
  CHECK(points[1].value == 6.5e-05);
  CHECK(points[1].model.empty());
  CHECK(points[1].notes.empty());
}

TEST_CASE("the experts of a fused_moe are words of its notes, or refused with their line") {
  const auto row = [](const std::string& kind, const std::string& notes) {
    return kHeader + "e," + kind + ",bw1000,1,vLLM,,bf16,,,,,,,64,14336,4096,,,,1e-3,s,a table,\"" + notes + "\"\n";
  };
  const PublishedPoint point =
      read_points("p.csv", row("fused_moe", "SIZE=5 E=256 top-k=8, hidden=4096; best")).front();
  CHECK(point.num_experts == 256);
  CHECK(point.num_experts_per_tok == 8);
  CHECK_FALSE(read_points("p.csv", row("fused_moe", "SIZE=5 hidden=4096")).front().num_experts.has_value());
  CHECK_FALSE(read_points("p.csv", row("matmul", "E=256")).front().num_experts.has_value());
  const auto refused = [&row](const std::string& notes) { return refusal_of_points(row("fused_moe", notes)); };
  CHECK_THAT(refused("E=8x top-k=2"), ContainsSubstring("p.csv:2: notes: 'E=8x' is not a count"));
  CHECK_THAT(refused("E= top-k=2"), ContainsSubstring("notes: 'E=' is not a count"));
  CHECK_THAT(refused("E=8 top-k=-2"), ContainsSubstring("notes: 'top-k=-2' is not a count"));
  CHECK_THAT(refused("E=8 top-k=2 E=16"), ContainsSubstring("notes: 'E=16' says E= once more"));
  CHECK_THAT(refused("E=8 top-k=9"), ContainsSubstring("p.csv:2: notes: top-k=9 is more than the 8 experts (E)"));
}

TEST_CASE("kinds of the hardware have units, bytes, a clock and a kernel") {
  const std::string columns = "id,kind,machine,devices,m,value,unit,source,clock,kernel\n";
  const std::vector<PublishedPoint> points = read_points(
      "p.csv", columns + "a,all_reduce,bw1000,8,268435456,0.004,s,a table,,\n" +
                   "b,copy_bandwidth,bw1000,1,6442450944,1219,GB/s,a table,1550 MHz,\n" +
                   "c,peak_rate,k100-lc,1,,1.5e15,OP/s,a table,,\n" +
                   "d,attention_decode,bw1000,1,,1e-4,s,a table,default,triton_unified_attention_3d block_m=16\n" +
                   "e,fused_moe,bw1000,1,64,1e-3,s,a table,,\n");
  REQUIRE(points.size() == 5);
  CHECK(points[0].bytes == 268435456);
  CHECK_FALSE(points[0].m.has_value());
  CHECK(points[1].bytes == 6442450944);
  CHECK(points[1].clock == "1550 MHz");
  CHECK(points[1].unit == "GB/s");
  CHECK(points[2].value == 1.5e15);
  CHECK(points[3].kernel == "triton_unified_attention_3d block_m=16");
  CHECK(points[4].m == 64);
  CHECK(points[4].clock.empty());
  for (const char* kind : {"copy_bandwidth", "cache_bandwidth", "cache_latency", "launch_overhead", "peak_rate"})
    CHECK(is_of_hardware(read_points("p.csv", columns + "a," + kind + ",z,1,,1," +
                                                  std::string(std::string(kind).ends_with("width") ? "GB/s"
                                                              : std::string(kind) == "peak_rate"   ? "FLOP/s"
                                                                                                   : "s") +
                                                  ",b,,\n")[0]
                             .kind));
  CHECK_FALSE(is_of_hardware(points[0].kind));

  CHECK_THAT(refusal_of_points(columns + "a,all_reduce,bw1000,8,1e3,0.004,s,a table,,\n"),
             ContainsSubstring("p.csv:2: m:"));
  CHECK_THAT(refusal_of_points(columns + "a,matmul,bw1000,1,6442450944,0.004,s,a table,,\n"),
             ContainsSubstring("p.csv:2: m:"));
  CHECK_THAT(refusal_of_points(columns + "a,copy_bandwidth,bw1000,1,64,4,s,a table,,\n"),
             ContainsSubstring("unit: 's' is not known; use one of GB/s"));
  CHECK_THAT(refusal_of_points(columns + "a,peak_rate,bw1000,1,,4,s,a table,,\n"),
             ContainsSubstring("unit: 's' is not known; use one of FLOP/s, OP/s"));
  CHECK_THAT(refusal_of_points(columns + "a,cache_latency,bw1000,1,64,1e13,s,a table,,\n"),
             ContainsSubstring("out of range"));
  CHECK_THAT(refusal_of_points(replaced(columns, "clock", "clocks") + "a,all_reduce,bw1000,8,64,1,s,a table,x,\n"),
             ContainsSubstring("did you mean 'clock'"));
}

TEST_CASE("a wrong row is refused with its line") {
  CHECK_THAT(refusal_of_points(""), ContainsSubstring("is empty"));
  CHECK_THAT(refusal_of_points(kHeader + replaced(kDecode, "70.5", "-1")),
             ContainsSubstring("p.csv:2: value: '-1' is out of range"));
  CHECK_THAT(refusal_of_points(kHeader + replaced(kDecode, "70.5", "1e-300")),
             ContainsSubstring("it must be at least 1e-12 and at most 1e+12"));
  CHECK_THAT(refusal_of_points(kHeader + replaced(kDecode, "70.5", "nan")), ContainsSubstring("not a number"));
  CHECK_THAT(refusal_of_points(kHeader + replaced(kDecode, "70.5", "")), ContainsSubstring("p.csv:2: value: missing"));
  CHECK_THAT(refusal_of_points(kHeader + replaced(kDecode, "tokens/s", "s")),
             ContainsSubstring("unit: 's' is not known; use one of tokens/s"));
  CHECK_THAT(refusal_of_points(kHeader + replaced(kDecode, "decode_rate", "decod_rate")),
             ContainsSubstring("did you mean 'decode_rate'"));
  CHECK_THAT(refusal_of_points(kHeader + kDecode + kDecode), ContainsSubstring("p.csv:3: id: stands on line 2 too"));
  CHECK_THAT(refusal_of_points(kHeader + "a,b\n"),
             ContainsSubstring("p.csv:2: 2 cells, but the first line names 23 columns"));
  CHECK_THAT(refusal_of_points(kHeader + kDecode.substr(0, kDecode.size() - 2) + "\n"),
             ContainsSubstring("a quoted cell does not end"));
  CHECK_THAT(
      refusal_of_points(replaced(kHeader, "kv_heads", "kv_head") + replaced(kDecode, ",,,,,,70.5", ",,,,4,,70.5")),
      ContainsSubstring("unknown key; did you mean 'kv_heads'?"));
  CHECK_THAT(refusal_of_points(replaced(kHeader, "id,", "id,id,") + "x," + kDecode), ContainsSubstring("stands twice"));
}

}  // namespace
}  // namespace dculab::config

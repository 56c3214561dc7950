// Tables of kernels as each profiler lays them out; tests/data/profiles has whole files.
#include "config/profile/profile_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "fields/node.hpp"
#include "files/input.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

Profile profile_from(const std::string& text, Profiler profiler = Profiler::automatic) {
  return read_profile("p.csv", text, profiler);
}

std::string refusal_of_profile(const std::string& text, Profiler profiler = Profiler::automatic) {
  try {
    static_cast<void>(profile_from(text, profiler));
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

// rocm.docs.amd.com, rocprofiler-sdk, "Kernel naming and filtering": header and first rows as printed there.
const std::string kRocprofv3 =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\","
    "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\"\n"
    "\"KERNEL_DISPATCH\",\"Agent 4\",1,1,852831,1,10,\"void addition_kernel<float>(float*, float const*, float const*, "
    "int, int)\",1,1551874061244694,1551874061255734,0\n"
    "\"KERNEL_DISPATCH\",\"Agent 4\",1,1,852831,2,13,\"subtract_kernel(float*, float const*, int)\",2,1551874061259214,"
    "1551874061270254,0\n";

// results.csv of rocprof 1 as printed by its users (mini-nbody on an MI200).
const std::string kRocprof =
    "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"queue-index\",\"pid\",\"tid\",\"grd\",\"wgr\",\"lds\",\"scr\","
    "\"arch_vgpr\",\"accum_vgpr\",\"sgpr\",\"wave_size\",\"sig\",\"obj\",\"DispatchNs\",\"BeginNs\",\"EndNs\","
    "\"CompleteNs\",\"DurationNs\"\n"
    "0,\"bodyForce(Body*, float, int) [clone .kd]\",0,0,0,3670615,3670615,65536,256,0,0,20,4,16,64,\"0x0\","
    "\"0x7f7b27c04500\",1591372809346673,1591372809872935,1591372836189584,1591372836215944,26316649\n";

TEST_CASE("rocprofv3's kernel trace") {
  const Profile profile = profile_from(kRocprofv3);
  CHECK(profile.profiler == Profiler::rocprofv3);
  REQUIRE(profile.kernels.size() == 2);
  CHECK(profile.kernels[0].name == "void addition_kernel<float>(float*, float const*, float const*, int, int)");
  CHECK(profile.kernels[0].device == "Agent 4");
  CHECK(profile.kernels[0].line == 2);
  CHECK(profile.kernels[0].begin_ns == 1551874061244694);
  CHECK(profile.kernels[0].duration().value() == Approx(11040e-9));
}

TEST_CASE("rows of rocprofv3 that are no kernels are left out") {
  CHECK(profile_from(kRocprofv3 + "\"MEMORY_COPY\",\"Agent 4\",1,1,8,3,1,\"copy\",3,1,2,0\n").kernels.size() == 2);
}

TEST_CASE("rocprof's results") {
  const Profile profile = profile_from(kRocprof);
  CHECK(profile.profiler == Profiler::rocprof);
  REQUIRE(profile.kernels.size() == 1);
  CHECK(profile.kernels[0].name == "bodyForce(Body*, float, int) [clone .kd]");
  CHECK(profile.kernels[0].end_ns - profile.kernels[0].begin_ns == 26316649);
}

TEST_CASE("rocprof 2 names its columns otherwise") {
  const Profile profile =
      profile_from("Dispatch_ID,GPU_ID,Queue_ID,Kernel_Name,Start_Timestamp,End_Timestamp\n0,1,1,k,5,9\n");
  CHECK(profile.profiler == Profiler::rocprof);
  CHECK(profile.kernels.front().device == "1");
}

TEST_CASE("nsys' GPU trace: durations instead of ends, in the unit of the header, behind a preamble") {
  const std::string preamble =
      "\nNOTICE: Existing SQLite export found: reports/x.sqlite\n        It's \"assumed\" ...\n\n"
      "Processing [x.sqlite] with [cuda_gpu_trace.py]... \n";
  const Profile ns =
      profile_from(preamble + "Start (ns),Duration (ns),CorrId,Device,Strm,Name\n100,50,1,A100 (0),7,k<a>\n");
  CHECK(ns.profiler == Profiler::nsys);
  REQUIRE(ns.kernels.size() == 1);
  CHECK(ns.kernels[0].begin_ns == 100);
  CHECK(ns.kernels[0].end_ns == 150);
  const Profile us = profile_from("Start (us),Duration (us),Name\n1.5,0.25,k\n");
  CHECK(us.kernels[0].begin_ns == 1500);
  CHECK(us.kernels[0].end_ns == 1750);
}

TEST_CASE("hipprof's columns go by several names") {
  for (const char* header : {"Index,KernelName,grd,BeginNs,EndNs", "Index,Name,dev_id,BeginNs,EndNs",
                             "Index,STR_NAME,queue_id,BeginNs,EndNs", "Index,kernel_name,x,StartNs,StopNs"}) {
    INFO(header);
    const Profile profile = profile_from(std::string(header) + "\n0,k,0,5,9\n");
    CHECK(profile.profiler == Profiler::hipprof);
    REQUIRE(profile.kernels.size() == 1);
    CHECK(profile.kernels[0].end_ns == 9);
  }
}

TEST_CASE("hipprof's trace in JSON: kernels and copies, not the host's calls") {
  const std::string text = R"json([
    {"ph":"M","name":"process_name","args":{"name":"Stream on Device 0"}},
    {"ph":"X","cat":"HIP","name":"hipLaunchKernel","args":{"BeginNs":"1","EndNs":"2"}},
    {"ph":"X","cat":"HIPCOPY","name":"H2D","args":{"BeginNs":"70","EndNs":"90","devId":0}},
    {"ph":"X","cat":"HIPOPS","name":"k","args":{"BeginNs":"50","EndNs":"60","devId":0,"name":"k(int)"}}])json";
  const Profile profile = profile_from(text);
  CHECK(profile.profiler == Profiler::hipprof);
  REQUIRE(profile.kernels.size() == 2);
  CHECK(profile.kernels[0].name == "k(int)");
  CHECK(profile.kernels[0].begin_ns == 50);
  CHECK(profile.kernels[1].name == "hipMemcpy H2D");
}

TEST_CASE("kernels are put in order of their begin") {
  const Profile profile = profile_from("Start (ns),Duration (ns),Name\n9,1,late\n1,2,early\n");
  CHECK(profile.kernels.front().name == "early");
  CHECK(profile.kernels.front().line == 3);
}

TEST_CASE("PyTorch's traces have microseconds, packed or not, to the nanosecond") {
  const std::string event =
      R"({"ph":"X","cat":"kernel","name":"k","ts":4203669603454.206,"dur":22.4419,"args":{"device":2}})";
  const Profile one =
      profile_from("{\"traceEvents\": [" + event + R"(, {"ph":"X","cat":"cpu_op","name":"o","ts":1,"dur":2},
      {"ph":"X","cat":"gpu_user_annotation","name":"step","ts":1,"dur":9}]})");
  CHECK(one.profiler == Profiler::pytorch);
  REQUIRE(one.kernels.size() == 1);
  CHECK(one.kernels[0].begin_ns == 4203669603454206);
  CHECK(one.kernels[0].end_ns == 4203669603454206 + 22441);
  CHECK(one.kernels[0].device == "2");

  const auto foreign = [](const std::string& name) {
    return read_profile_file(DCULAB_SOURCE_DIR "/tests/data/foreign/profiles/" + name, Profiler::automatic);
  };
  const Profile sglang = foreign("kineto_sglang_qwen3-8b_decode.json.gz");
  CHECK(sglang.profiler == Profiler::pytorch);
  CHECK(sglang.kernels.size() == 558);
  CHECK(sglang.kernels[0].begin_ns == 4909914216285224);
  CHECK(foreign("kineto_vllm_decode_full_graph_execution.json.gz").kernels.size() == 434);
  CHECK(foreign("kineto_mi250_rocm6.2_minitoy_train.json.gz").kernels.size() == 16);

  CHECK_THAT(refusal_of_profile(R"([{"ph":"X","cat":"kernel","name":"k","ts":"soon","dur":1}])"),
             ContainsSubstring("traceEvents[0]: ts is no time in us"));
  CHECK_THAT(refusal_of_profile(R"([{"ph":"X","cat":"kernel","name":"k","ts":1}])"),
             ContainsSubstring("dur is no time in us"));
  CHECK_THAT(refusal_of_profile("\x1f\x8b nothing"), ContainsSubstring("p.csv"));
}

TEST_CASE("databases of rocprofv3 and of nsys hold kernels") {
  const auto foreign = [](const std::string& name, Profiler profiler = Profiler::automatic) {
    return read_profile_file(DCULAB_SOURCE_DIR "/tests/data/foreign/profiles/" + name, profiler);
  };
  const Profile rocpd = foreign("rocpd_schema3.0.0_mi350_120dispatches_results.db");
  CHECK(rocpd.profiler == Profiler::rocprofv3);
  REQUIRE(rocpd.kernels.size() == 120);
  CHECK(rocpd.kernels[0].name == "__amd_rocclr_copyBuffer");
  CHECK(rocpd.kernels[0].begin_ns == 63857982592000);
  CHECK(rocpd.kernels[0].end_ns == 63857982594840);
  CHECK(rocpd.kernels[0].device == "2");
  const Profile nsys = foreign("SYNTH_nsys_gh200_vllm_250kernels.sqlite");
  CHECK(nsys.profiler == Profiler::nsys);
  CHECK(nsys.kernels.size() == 250);
  CHECK_THROWS_WITH(foreign("SYNTH_nsys_gh200_vllm_250kernels.sqlite", Profiler::rocprofv3),
                    ContainsSubstring("is a profile of nsys, not of rocprofv3"));

  std::string whole = files::read_text(
      DCULAB_SOURCE_DIR "/tests/data/foreign/profiles/rocpd_schema3.0.0_mi350_120dispatches_results.db", 1 << 20);
  CHECK_THAT(refusal_of_profile(whole.substr(0, 5000)), ContainsSubstring("is an SQLite database"));
  CHECK_THAT(refusal_of_profile(whole.substr(0, 16)), ContainsSubstring("is an SQLite database"));

  whole[18] = whole[19] = 2;  // as a writer in WAL mode leaves it
  CHECK(read_profile("w.db", whole, Profiler::automatic).kernels.size() == 120);
  const std::string file =
      (std::filesystem::temp_directory_path() / ("dculab-wal-" + std::to_string(::getpid()) + ".db")).string();
  std::ofstream(file, std::ios::binary) << whole;
  CHECK(read_profile_file(file, Profiler::automatic).kernels.size() == 120);
  std::ofstream(file + "-wal") << "changes";
  CHECK_THROWS_WITH(read_profile_file(file, Profiler::automatic),
                    ContainsSubstring("the rest is in") && ContainsSubstring("wal_checkpoint"));
  std::filesystem::remove(file);
  std::filesystem::remove(file + "-wal");
}

TEST_CASE("JSON that is no trace of a profiler is refused") {
  CHECK(refusal_of_profile("{\"traceEvents\": [") ==
        "p.csv:1:18: is not valid JSON (syntax error while parsing value - unexpected end of input; expected '[', '{', "
        "or a "
        "literal); a run that was stopped leaves half a file: record again");
  CHECK_THAT(refusal_of_profile("{}"), ContainsSubstring("p.csv: no traceEvents"));
  CHECK(refusal_of_profile(R"([{"ph":"X","cat":"HIPOPS","name":"k","args":{"BeginNs":"50","EndNs":"sixty"}}])") ==
        "p.csv: traceEvents[0]: EndNs is no time in ns; export the trace again");
  CHECK_THAT(refusal_of_profile("{\"traceEvents\": []}"), ContainsSubstring("no kernel in the table"));
  CHECK_THAT(refusal_of_profile("{\"traceEvents\": []}", Profiler::nsys),
             ContainsSubstring("is a profile of hipprof, not of nsys"));
}

TEST_CASE("a table of another profiler is refused when one is named") {
  CHECK_THAT(refusal_of_profile(kRocprof, Profiler::nsys),
             ContainsSubstring("p.csv: no table of kernels of nsys (Name, Start and Duration) in the first 64 lines"));
  CHECK(profile_from(kRocprof, Profiler::hipprof).profiler == Profiler::hipprof);
}

TEST_CASE("all broken rows are named, but not thousands") {
  std::string text = "Start (ns),Duration (ns),Name\n";
  for (int row = 0; row < 100; ++row) text += "x,1,k\n";
  const std::string message = refusal_of_profile(text);
  CHECK_THAT(message, ContainsSubstring("p.csv:2: begin: 'x' is not a time"));
  CHECK_THAT(message, ContainsSubstring("p.csv:21: begin"));
  CHECK_THAT(message, !ContainsSubstring("p.csv:22:"));
}

// The first line is "# expect: " and what follows the file's path in the message.
TEST_CASE("every bad profile gives the message it names") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DCULAB_SOURCE_DIR "/tests/bad/profile")) {
    const std::string file = entry.path().string();
    INFO(file);
    const std::string text = files::read_text(file, 1 << 20);
    const std::string mark = "# expect: ";
    REQUIRE(text.starts_with(mark));
    const std::string expected = file + text.substr(mark.size(), text.find('\n') - mark.size());
    std::string message = "accepted";
    try {
      static_cast<void>(read_profile_file(file, Profiler::automatic));
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK(message == expected);
    ++count;
  }
  CHECK(count >= 12);
}

}  // namespace
}  // namespace dculab::config

#include "tests/fuzz/extremes.hpp"

#include <array>
#include <cstdint>

#include "config/journal_file.hpp"
#include "config/little_endian.hpp"
#include "core/fingerprint.hpp"

namespace dculab::fuzz {
namespace {

constexpr int kDeep = 100'000;
constexpr int kMany = 100'000;
constexpr int kLong = 1'000'000;

std::string repeated(std::string_view text, int count) {
  std::string all;
  all.reserve(text.size() * static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) all += text;
  return all;
}

// make(0), make(1), ... with commas between them.
std::string listed(int count, std::string (*make)(int)) {
  std::string all;
  for (int index = 0; index < count; ++index) all.append(index == 0 ? "" : ",").append(make(index));
  return all;
}

std::string lists_in_lists() { return repeated("[", kDeep) + repeated("]", kDeep); }
std::string maps_in_maps() { return repeated(R"({"a":)", kDeep) + "1" + repeated("}", kDeep); }
std::string open_lists() { return repeated("[", kLong); }
std::string long_text() { return '"' + std::string(kLong, 'a') + '"'; }

std::string safetensors(const std::string& header, std::size_t data_bytes) {
  std::string file;
  for (unsigned shift = 0; shift < 64; shift += 8) file += static_cast<char>(header.size() >> shift & 0xFFU);
  return file + header + std::string(data_bytes, '\0');
}

// One byte of data for each.
std::string tensor_entry(int index) {
  const std::string begin = std::to_string(index), end = std::to_string(index + 1);
  return "\"t" + begin + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + begin + "," + end + "]}";
}

std::string config_with(const std::string& key, const std::string& value) {
  return R"({"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":1,"num_attention_heads":4,)"
         R"("vocab_size":96,"max_position_embeddings":128,"rms_norm_eps":1e-5,")" +
         key + "\":" + value + "}";
}

// The first byte says that a tokenizer follows.
std::string tokenizer_with(const std::string& normalizer, const std::string& added_tokens) {
  return R"(0{"added_tokens":[)" + added_tokens + R"(],"normalizer":)" + normalizer +
         R"(,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},)"
         R"("model":{"type":"BPE","vocab":{"e":0,"t":1,"et":2},"merges":["e t"]}})";
}

std::string added_token(int index) {
  const std::string id = std::to_string(3 + index);
  return R"({"id":)" + id + R"(,"content":"<)" + id +
         R"(>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true})";
}

std::string sequence_in_sequence() {
  return tokenizer_with(repeated(R"({"type":"Sequence","normalizers":[)", kDeep) + repeated("]}", kDeep), "");
}

// Each step makes a text 100 times as long.
std::string growing_normalizer() {
  const std::string step = R"({"type":"Replace","pattern":{"String":"e"},"content":")" + std::string(100, 'e') + "\"}";
  return tokenizer_with(R"({"type":"Sequence","normalizers":[)" + repeated(step + ",", 7) + step + "]}", "");
}

std::string lines_of(const std::string& head, std::string_view line) { return head + "\n" + repeated(line, kMany); }
std::string one_cell(const std::string& head) { return head + "\n" + std::string(kLong, 'a'); }
std::string open_quote(const std::string& head) { return head + "\n\"" + std::string(kLong, '\n'); }
std::string many_columns() { return repeated("a,", kMany) + "\n" + repeated("1,", kMany); }

std::string accuracy_head() { return "model,num_key_value_heads,method"; }
std::string points_head() { return "id,kind,machine,devices,value,unit,source"; }
std::string serving_runs_head() { return "experiment,stage,machine,metric,requests_per_second"; }
std::string requests_head() { return "arrived_at,num_prefill_tokens,num_decode_tokens"; }
std::string profile_head() { return "KernelName,BeginNs,EndNs,dev_id"; }
std::string trace_head() {
  return R"({"schema":"dculab/trace/1","machine":"m","device":"","build":"","threads":1,"timing":"","created":""})";
}

// A journal of two chunks that has none yet.
std::string empty_journal() {
  const std::string format = "dculab study journal 2\n";
  return format + config::record_bytes(format.size(), "1 0 2 1 1\n{}");
}

// Its first chunk says that it is the largest there may be, and breaks off.
std::string journal_without_end() {
  std::string file = empty_journal();
  const std::string size = config::to_little_endian(1U << 26U);
  file += size + config::to_little_endian(fingerprint(size, file.size()));
  return file + "abc";
}

std::string hipprof_event(int index) {
  const std::string time = std::to_string(1000 * index);
  return R"({"ph":"X","cat":"HIPOPS","name":"gemm","args":{"BeginNs":")" + time + R"(","EndNs":")" + time +
         R"(","devId":0}})";
}

constexpr std::array kExtremes{
    Extreme{"accuracy", "many wrong rows", [] { return lines_of(accuracy_head(), "m,x,\n"); }},
    Extreme{"accuracy", "a long cell", [] { return one_cell(accuracy_head()); }},
    Extreme{"accuracy", "a quote that does not end", [] { return open_quote(accuracy_head()); }},
    Extreme{"accuracy", "many columns", many_columns},
    Extreme{"conversations", "lists in lists", lists_in_lists},
    Extreme{"conversations", "open lists", open_lists},
    Extreme{"conversations", "a long text", long_text},
    Extreme{"conversations", "maps in maps", [] { return R"([{"conversations":)" + maps_in_maps() + "}]"; }},
    Extreme{"conversations", "many wrong ones", [] { return "[" + repeated("[],", kMany) + "[]]"; }},
    Extreme{"conversations", "many keys",
            [] { return "[{" + listed(kMany, [](int i) { return "\"" + std::to_string(i) + "\":0"; }) + "}]"; }},
    Extreme{"conversations", "many equal keys",
            [] { return "[{" + listed(kMany, [](int) { return std::string(R"("a":0)"); }) + "}]"; }},
    Extreme{"journal", "a tail of zeros", [] { return empty_journal() + std::string(kLong, '\0'); }},
    Extreme{"journal", "a record without end", journal_without_end},
    Extreme{"journal", "a long chunk", [] { return std::string(kLong, '\0'); }},
    Extreme{"points", "many wrong rows", [] { return lines_of(points_head(), "p,x,,0,-1,h,\n"); }},
    Extreme{"points", "a long cell", [] { return one_cell(points_head()); }},
    Extreme{"points", "a quote that does not end", [] { return open_quote(points_head()); }},
    Extreme{"points", "many columns", many_columns},
    Extreme{"profile", "many kernels", [] { return lines_of(profile_head(), "gemm,1,2,0\n"); }},
    Extreme{"profile", "many events", [] { return "[" + listed(kMany, hipprof_event) + "]"; }},
    Extreme{"profile", "a long cell", [] { return one_cell(profile_head()); }},
    Extreme{"profile", "lists in lists", [] { return R"({"traceEvents":)" + lists_in_lists() + "}"; }},
    Extreme{"quantized", "lists in lists", [] { return config_with("quantization_config", lists_in_lists()); }},
    Extreme{"quantized", "maps in maps", [] { return config_with("quantization_config", maps_in_maps()); }},
    Extreme{"questions", "many wrong lines", [] { return repeated("{}\n", kMany); }},
    Extreme{"questions", "lists in lists", lists_in_lists},
    Extreme{"questions", "a long line", [] { return R"({"question":{"stem":)" + long_text() + "}}"; }},
    Extreme{"requests", "many wrong rows", [] { return lines_of(requests_head(), "-1,0,x\n"); }},
    Extreme{"requests", "many rows", [] { return lines_of(requests_head(), "1,2,3\n"); }},
    Extreme{"requests", "a long cell", [] { return one_cell(requests_head()); }},
    Extreme{"serving_runs", "many wrong rows", [] { return lines_of(serving_runs_head(), "1,all,,e2e,0\n"); }},
    Extreme{"serving_runs", "many stages",
            [] { return lines_of(serving_runs_head(), "1,all,m,e2e_mean," + repeated("1+", 100) + "1\n"); }},
    Extreme{"serving_runs", "a long cell", [] { return one_cell(serving_runs_head()); }},
    Extreme{"serving_runs", "many columns", many_columns},
    Extreme{"safetensors", "many tensors", [] { return safetensors("{" + listed(kMany, tensor_entry) + "}", kMany); }},
    Extreme{"safetensors", "lists in lists", [] { return safetensors(lists_in_lists(), 0); }},
    Extreme{"safetensors", "a tensor in a tensor", [] { return safetensors(maps_in_maps(), 0); }},
    Extreme{"safetensors", "rope_scaling in lists",
            [] { return config_with("rope_scaling", R"({"a":)" + lists_in_lists() + "}"); }},
    Extreme{"safetensors", "a long architecture", [] { return config_with("model_type", long_text()); }},
    Extreme{"shard_index", "lists in lists", [] { return R"({"weight_map":)" + lists_in_lists() + "}"; }},
    Extreme{"shard_index", "maps in maps", [] { return R"({"weight_map":)" + maps_in_maps() + "}"; }},
    Extreme{"shard_index", "a long name", [] { return R"({"weight_map":{"a":)" + long_text() + "}}"; }},
    Extreme{"tokenizer", "sequences in sequences", sequence_in_sequence},
    Extreme{"tokenizer", "a normalizer that grows", growing_normalizer},
    Extreme{"tokenizer", "many added tokens", [] { return tokenizer_with("null", listed(kMany, added_token)); }},
    Extreme{"tokenizer", "a long text", [] { return std::string(kLong, 'a'); }},
    Extreme{"tokenizer", "a long text of spaces", [] { return "1" + std::string(kLong, ' '); }},
    Extreme{"trace", "many wrong lines", [] { return lines_of(trace_head(), "{}\n"); }},
    Extreme{"trace", "maps in maps", [] { return trace_head() + "\n" + maps_in_maps(); }},
    Extreme{"trace", "a long name", [] { return R"({"schema":)" + long_text() + "}"; }},
    Extreme{"yaml", "lists in lists", [] { return "1a: " + lists_in_lists(); }},
    Extreme{"yaml", "open lists", [] { return "1a: " + open_lists(); }},
    Extreme{"yaml", "many keys", [] { return "1" + repeated("a: 1\n", kMany); }},
    Extreme{"yaml", "a long text", [] { return "0" + long_text(); }},
};

}  // namespace

std::span<const Extreme> extremes() { return kExtremes; }

}  // namespace dculab::fuzz

// The lecture's formulas and footprints, exactly.
#include <algorithm>
#include <array>
#include <string_view>

#include "sim/tables/footprint.hpp"
#include "sim/tables/intensity.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

const IntensityRow& find_row(const IntensityTable&& table, std::string_view op) = delete;
const IntensityRow& find_row(const IntensityTable& table, std::string_view op) {
  const auto found = std::find_if(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row.op == op; });
  REQUIRE(found != table.rows.end());
  return *found;
}

// The lecture's own table, typed in: No. and formula, "" for "-".
struct LectureRow {
  int number;
  std::string_view formula;
};
constexpr std::array kPrefill{LectureRow{1, "LD/(2L+D)"},
                              LectureRow{2, "LD/(2L+D)"},
                              LectureRow{3, "LD/(2L+D)"},
                              LectureRow{4, ""},
                              LectureRow{5, ""},
                              LectureRow{6, ""},
                              LectureRow{7, "LH/(2H+L)"},
                              LectureRow{8, "LH/(2H+L)"},
                              LectureRow{9, ""},
                              LectureRow{10, "LD/(2L+D)"},
                              LectureRow{11, "4LD/(5L+4D)"},
                              LectureRow{12, ""},
                              LectureRow{13, "4LD/(5L+4D)"}};
constexpr std::array kDecode{LectureRow{1, "D/(2+D)"},
                             LectureRow{2, "D/(2+D)"},
                             LectureRow{3, ""},
                             LectureRow{4, "D/(2+D)"},
                             LectureRow{5, ""},
                             LectureRow{6, ""},
                             LectureRow{7, ""},
                             LectureRow{8, ""},
                             LectureRow{9, "(H+LH)/(2H+L+LH+1)"},
                             LectureRow{10, "(H+LH)/(2H+L+LH+1)"},
                             LectureRow{11, ""},
                             LectureRow{12, "D/(2+D)"},
                             LectureRow{13, "4D/(5+4D)"},
                             LectureRow{14, ""},
                             LectureRow{15, "4D/(5+4D)"}};

// The formulas once more, independently of sim/tables.
double by_hand(std::string_view formula, double L, double D, double H) {
  if (formula == "LD/(2L+D)") return L * D / (2 * L + D);
  if (formula == "LH/(2H+L)") return L * H / (2 * H + L);
  if (formula == "4LD/(5L+4D)") return 4 * L * D / (5 * L + 4 * D);
  if (formula == "D/(2+D)") return D / (2 + D);
  if (formula == "(H+LH)/(2H+L+LH+1)") return (H + L * H) / (2 * H + L + L * H + 1);
  if (formula == "4D/(5+4D)") return 4 * D / (5 + 4 * D);
  FAIL("unknown formula");
  return 0;
}

template <std::size_t N>
void check_lecture(const std::array<LectureRow, N>& lecture, Phase phase, int L, int D, int H) {
  const IntensityTable table = intensity_table(lecture_model(D, H), 0, phase, L, 1, Dtype::f16);
  REQUIRE(table.rows.size() == N);
  for (std::size_t index = 0; index < N; ++index) {
    const IntensityRow& row = table.rows[index];
    CAPTURE(row.op, L, D, H);
    CHECK(row.number == lecture[index].number);
    CHECK(text(row.formula) == lecture[index].formula);
    if (lecture[index].formula.empty()) continue;
    REQUIRE(row.intensity.has_value());
    CHECK(row.intensity->value() == Approx(by_hand(lecture[index].formula, L, D, H)).epsilon(1e-12));
    CHECK(row.intensity->value() == Approx(evaluate(row.formula, L, D, H).value()).epsilon(1e-12));
  }
}

TEST_CASE("every row of the lecture's tables, for many lengths and widths") {
  for (const int H : {16, 64, 128})
    for (const int D : {H, 4 * H, 32 * H})
      for (const int L : {1, 2, 7, 128, 2048, 100000}) {
        check_lecture(kPrefill, Phase::prefill, L, D, H);
        check_lecture(kDecode, Phase::decode, L, D, H);
      }
}

TEST_CASE("FLOP and bytes of a row by hand: one multiply-add is 2 FLOP, an FP16 element 2 bytes") {
  const IntensityTable table = intensity_table(lecture_model(64, 16), 0, Phase::prefill, 10, 1, Dtype::f16);
  CHECK(find_row(table, "q_proj").flops.value() == 2.0 * 10 * 64 * 64);
  CHECK(find_row(table, "q_proj").bytes.value() == 2.0 * (10 * 64 + 64 * 64 + 10 * 64));
  CHECK(find_row(table, "scores").flops.value() == 4 * 2.0 * 10 * 10 * 16);
  CHECK(find_row(table, "scores").bytes.value() == 4 * 2.0 * (10 * 16 + 10 * 16 + 10 * 10));
  CHECK_FALSE(find_row(table, "merge").intensity.has_value());
}

TEST_CASE("Llama-3-8B: true matrices, and K and V shared by groups of four heads") {
  const IntensityTable table = intensity_table(llama_3_8b(), 0, Phase::decode, 2047, 1, Dtype::f16);
  CHECK(find_row(table, "k_proj").flops.value() == 2.0 * 4096 * 1024);
  CHECK(find_row(table, "gate_proj").flops.value() == 2.0 * 4096 * 14336);
  CHECK(find_row(table, "up_proj").flops == find_row(table, "gate_proj").flops);
  const IntensityRow& scores = find_row(table, "scores");
  CHECK(scores.flops.value() == 2.0 * 32 * 2048 * 128);
  CHECK(scores.bytes.value() == 2.0 * (32 * 128 + 8 * 2048 * 128 + 32 * 2048));
  CHECK(scores.formula == LectureFormula::none);
  const IntensityTable all_heads =
      intensity_table(with_kv_heads(llama_3_8b(), 32), 0, Phase::decode, 2047, 1, Dtype::f16);
  const IntensityRow& mha = find_row(all_heads, "scores");
  CHECK(scores.intensity->value() > 3.5 * mha.intensity->value());
  CHECK(scores.intensity->value() < 4.0 * mha.intensity->value());
  CHECK(find_row(table, "o_proj").formula == LectureFormula::decode_square);
  CHECK(find_row(table, "gate_proj").formula == LectureFormula::none);
}

TEST_CASE("a batch shares the weights, and the total is the sum of the rows") {
  const IntensityTable one = intensity_table(llama_2_7b(), 0, Phase::decode, 100, 1, Dtype::f16);
  const IntensityTable many = intensity_table(llama_2_7b(), 0, Phase::decode, 100, 16, Dtype::f16);
  CHECK(find_row(many, "q_proj").intensity->value() == Approx(16.0 * 4096 / (2 * 16 + 4096)));
  CHECK(find_row(many, "scores").intensity->value() == Approx(find_row(one, "scores").intensity->value()));
  FlopCount flops;
  Bytes bytes;
  for (const IntensityRow& row : many.rows) {
    flops += row.flops;
    bytes += row.bytes;
  }
  CHECK(many.total.flops == flops);
  CHECK(many.total.bytes == bytes);
  const IntensityTable narrow = intensity_table(llama_2_7b(), 0, Phase::decode, 100, 1, Dtype::int8);
  CHECK(find_row(narrow, "q_proj").intensity->value() == Approx(2 * find_row(one, "q_proj").intensity->value()));
}

TEST_CASE("footprints of the lecture: 24 D^2, 20 D^2 + 4 D g H, 4 L D, 4 L g H, crossover at L = 6 D") {
  for (const int D : {512, 4096})
    for (const int L : {1, 1000}) {
      const double H = 64;
      for (const Footprint& row : footprint_table(lecture_model(D, 64), {.tokens = L})) {
        if (row.is_latent) continue;  // not of the lecture
        const double g = row.kv_heads;
        CHECK(row.layer_weight_bytes.value() == 20.0 * D * D + 4 * D * g * H);
        CHECK(row.layer_kv_bytes.value() == 4 * L * g * H);
        if (row.kv_heads == D / 64) {
          CHECK(row.layer_weight_bytes.value() == 24.0 * D * D);
          CHECK(row.layer_kv_bytes.value() == 4.0 * L * D);
          CHECK(row.crossover_tokens == 6.0 * D);
        }
      }
    }
}

TEST_CASE("Llama-2-7B and Llama-3-8B footprints") {
  const Footprint seven = footprint(llama_2_7b(), {.tokens = 2048});
  CHECK(seven.weight_bytes.value() == 2.0 * 6738415616);  // the checkpoint's parameters
  CHECK((32 * seven.layer_weight_bytes + seven.head_bytes).value() == 13214154752.0);
  CHECK(seven.kv_bytes.value() == 1073741824.0);
  CHECK(seven.kv_bytes_per_token.value() == 524288.0);
  const Footprint eight = footprint(llama_3_8b(), {.tokens = 2048});
  CHECK(eight.weight_bytes.value() == 2.0 * 8030261248);
  CHECK(eight.kv_bytes.value() == 268435456.0);
  CHECK(footprint(llama_3_8b(), {.tokens = 2048, .batch = 4, .kv_cache_dtype = Dtype::fp8_e4m3}).kv_bytes.value() ==
        2 * 268435456.0);
}

TEST_CASE("the table has every number of KV heads that divides the query heads, and latents") {
  const auto rows = footprint_table(llama_3_8b(), {.tokens = 1});
  REQUIRE(rows.size() == 7);
  CHECK(rows.front().kv_heads == 32);
  CHECK(rows[5].kv_heads == 1);
  CHECK_FALSE(rows[5].is_latent);
  CHECK(rows[6].is_latent);
}

}  // namespace
}  // namespace dculab::sim::test

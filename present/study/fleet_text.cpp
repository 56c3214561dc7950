#include "present/study/fleet_text.hpp"

#include <cstdint>
#include <optional>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "study/decide/doubt.hpp"
#include "study/decide/replica_service.hpp"

namespace dculab::present {
namespace {

using config::number;
using config::percent;

template <class Text>
[[nodiscard]] std::string with_interval(const study::ExpectedFigure& figure, Text text) {
  return text(figure.value) + " (" + text(figure.low) + " to " + text(figure.high) + ")";
}

[[nodiscard]] std::string time_text(double seconds) { return config::short_text(Seconds(seconds)); }

// "; 1.2 (1 to 1.5) J an output token"
[[nodiscard]] std::string expected_cost_text(const study::ExpectedService& expected) {
  std::string text;
  const auto plain = [](double value) { return number(value); };
  if (expected.joules_per_output_token)
    text += "; " + with_interval(*expected.joules_per_output_token, plain) + " J an output token";
  if (expected.usd_per_million_tokens)
    text += "; " + with_interval(*expected.usd_per_million_tokens, plain) + " USD a million output tokens";
  return text;
}

}  // namespace

std::string level_text(const ServiceLevel& slo) {
  std::string text;
  const auto add = [&text](const char* what, const std::optional<Seconds>& most) {
    if (most) text += (text.empty() ? " within " : ", ") + std::string(what) + " " + config::short_text(*most);
  };
  add("TTFT", slo.ttft);
  add("TPOT", slo.tpot);
  add("latency", slo.latency);
  return text;
}

std::string expected_text(const study::ExpectedService& expected) {
  return "TTFT P90 " + with_interval(expected.ttft_p90, time_text) + ", TPOT P90 " +
         with_interval(expected.tpot_p90, time_text);
}

std::string expectation_line(const study::ExpectedService& expected, const std::string& of) {
  constexpr int kFew = 50;
  const std::int64_t requests = expected.requests;
  const std::string few = requests < kFew ? " (of " + std::to_string(requests) + " requests: too few to rely on)" : "";
  return "→ expect " + expected_text(expected) + of + few + expected_cost_text(expected);
}

std::string share_text(double share, double bound) {
  constexpr int kFewest = 2, kMost = 4;
  int digits = kFewest;
  while (digits < kMost && share < bound && percent(share, digits) == percent(bound, digits)) ++digits;
  return percent(share, digits);
}

std::string doubt_text(const study::ExpectedService& expected, const ServiceLevel& slo) {
  const std::string at = "at the slow end of the interval ";
  switch (study::doubt_of(expected, slo)) {
    case study::Doubt::none:
      return {};
    case study::Doubt::service_level:
      if (expected.slo_attainment.value < slo.share) return "too few requests meet the SLO";
      return at + "too few requests meet the SLO";
    case study::Doubt::rate:
      break;
  }
  const study::ExpectedFigure& served = expected.requests_per_second;
  if (!expected.slowest_rate)
    return at + "only " + number(served.low) + " of " + number(served.value) + " requests/s are served";
  return at + "a replica serves " + number(*expected.slowest_rate) + " requests/s at most, and " +
         number(expected.arriving) + " arrive";
}

std::string attainment_line(const study::ExpectedService& expected, const ServiceLevel& slo, const std::string& doubt) {
  if (!study::has_limits(slo)) return doubt.empty() ? "" : "→ " + doubt;
  const auto share = [&slo](double value) { return share_text(value, slo.share); };
  return "→ " + with_interval(expected.slo_attainment, share) + " of the requests meet the SLO" +
         (doubt.empty() ? "" : "; " + doubt);
}

}  // namespace dculab::present

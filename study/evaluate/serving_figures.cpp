#include "study/evaluate/serving_figures.hpp"

#include "sim/cost/token_price.hpp"

namespace dculab::study {
namespace {

constexpr double kMedian = 0.5;

void add_latency(const std::string& name, const QuantileSketch& values, std::map<std::string, double>& figures) {
  if (values.count() == 0) return;
  figures[name + "_mean"] = values.mean().value();
  for (const auto& [suffix, share] : kPercentiles) figures[name + "_" + suffix] = values.quantile(share).value();
}

}  // namespace

std::map<std::string, double> serving_figures(const ServingMetrics& metrics) {
  const double seconds = metrics.duration().value();
  const auto rate = [seconds](std::int64_t count) { return static_cast<double>(count) / seconds; };
  std::map<std::string, double> figures{{"total_time", seconds},
                                        {"requests_per_second", rate(metrics.requests())},
                                        {"tokens_per_second", rate(metrics.prompt_tokens() + metrics.output_tokens())},
                                        {"output_tokens_per_second", rate(metrics.output_tokens())},
                                        {"goodput", rate(metrics.requests_within_objective())},
                                        {"share_within_slo", metrics.share_within_objective()}};
  add_latency("ttft", metrics.ttft(), figures);
  add_latency("tpot", metrics.tpot(), figures);
  add_latency("itl", metrics.itl(), figures);
  add_latency("latency", metrics.latency(), figures);
  add_latency("slowdown", metrics.slowdown(), figures);
  if (metrics.tpot().count() > 0) figures["tokens_per_second_per_user"] = 1 / metrics.tpot().quantile(kMedian).value();
  return figures;
}

std::map<std::string, double> compared_figures(const ServingMetrics& metrics, std::int64_t num_steps) {
  std::map<std::string, double> figures = serving_figures(metrics);
  figures["steps"] = static_cast<double>(num_steps);
  figures["output_tokens"] = static_cast<double>(metrics.output_tokens());
  return figures;
}

std::map<std::string, double> run_figures(const sim::SimulatedServer& server, const sim::ServingRun& run) {
  std::map<std::string, double> figures = compared_figures(run.metrics, run.num_steps);
  double devices = 0, usd_per_hour = 0;
  bool has_price = true;
  for (const ReplicaRole pool : sim::pools_of(server.deployment)) {
    const sim::Machine& machine = server.machine_of(pool);
    const double its = sim::machines_of(machine, server.deployment, pool);
    devices += its;
    usd_per_hour += its * machine.price_per_hour.value_or(0);
    has_price = has_price && machine.price_per_hour;
  }
  figures["tokens_per_second_per_gpu"] = figures.at("tokens_per_second") / devices;
  if (run.energy) figures["joules_per_output_token"] = run.energy->value() / figures.at("output_tokens");
  if (has_price)
    figures["usd_per_million_tokens"] =
        sim::usd_per_million_tokens(usd_per_hour, 1, figures.at("output_tokens_per_second"));
  return figures;
}

}  // namespace dculab::study

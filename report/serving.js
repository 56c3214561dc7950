// Requests as they are served, wherever an answer has them: what each setting serves, how long users wait, and whether
// that meets the service level.
//
// A point is {named, text, short, series, rate, times: {ttft_p90: seconds, ...}, share, slo, met, chosen, lines}: `share`
// of the requests is within the SLO, `met` says whether those are enough and whether the other constraints are met.
import { facts, format } from "./kit.js";

// What a latency is called, and which of the SLO's limits it is held against.
export const latencies = [
  ["TTFT, P90", "ttft_p90", "ttft"], ["TTFT, P99", "ttft_p99", "ttft"], ["TTFT, median", "ttft_p50", "ttft"],
  ["TPOT, P90", "tpot_p90", "tpot"], ["TPOT, P99", "tpot_p99", "tpot"], ["TPOT, median", "tpot_p50", "tpot"],
  ["whole request, P90", "latency_p90", "latency"], ["whole request, P99", "latency_p99", "latency"],
  ["whole request, median", "latency_p50", "latency"],
].map(([name, key, limit]) => ({ name, key, limit }));

export const hasLimits = (slo) => ["ttft", "tpot", "latency", "slowdown"].some((key) => slo?.[key] !== undefined);
const isMet = (share, slo) => !hasLimits(slo) || share >= slo.share;

const number = (value) => format.number(value);
const shareLine = (share, slo) => (hasLimits(slo) ? [["within the SLO", format.percent(share, 3)]] : []);

const ofSimulations = ({ simulations }, result) => {
  if (!simulations?.length) return [];
  const points = facts.simulations(result).map((each) => {
    const { machine: series, slo, requests, requests_within_slo: within, output_tokens_per_second: rate, goodput } = each;
    const share = within / requests;
    const lines = [["goodput", `${number(goodput)} requests/s`], ...shareLine(share, slo)];
    return { ...each, series, slo, rate, times: each, share, met: isMet(share, slo), chosen: each.best, lines };
  });
  return [{ choices: {}, points }];
};

const ofSearches = (result) =>
  facts.searches(result).filter(({ slo, all }) => slo && all.length).map(({ choices, all, slo }) => {
    const points = all.map((each) => {
      const { machine = "", goodput, output_tokens_per_second: rate, share_within_slo: share, meets_constraints: fine } = each;
      const lines = [
        ["goodput", `${number(goodput)} requests/s`], ...shareLine(share, slo), ["meets the constraints", fine ? "yes" : "no"],
      ];
      return { ...each, series: machine, slo, rate, times: each, share, met: fine && isMet(share, slo), lines };
    });
    return { choices, points };
  });

// Layouts of the devices: each replica serves its part of the load.
const ofLayouts = ({ fleet, machine, output_tokens: tokens }, slo) => {
  const points = fleet.layouts.filter(({ simulated }) => simulated).map((each) => {
    const { layout: text, kv_cache_dtype: kv, devices_of_replica: devices, replicas, simulated } = each;
    const { requests_per_second: requests, slo_attainment: share } = simulated;
    const lines = [
      ["replicas", replicas], ["devices of all", each.devices], ["KV dtype", kv], ["max_num_seqs", each.max_num_seqs],
      ...shareLine(share, slo),
    ];
    const chosen = each === fleet.layouts[fleet.chosen], met = isMet(share, slo);
    const told = { named: { layout: text }, text, short: text, series: machine, lines, chosen };
    return { ...told, slo, rate: (requests * tokens) / devices, times: simulated, share, met };
  });
  return { choices: { machine, among: "layouts" }, perDevice: true, points };
};
// Chunk sizes of a replica that serves its load.
const ofChunks = ({ max_num_batched_tokens: tokens, machine, output_tokens: long }, slo) => {
  const points = tokens.candidates.map((each) => {
    const { value, slo_attainment: share, most_requests_per_second: most, preemptions } = each, text = String(value);
    const lines = [["goodput", `${number(each.goodput)} requests/s`], ...shareLine(share, slo), ["preemptions", preemptions]];
    const met = isMet(share, slo), chosen = text === String(tokens.choice);
    const told = { named: { tokens: text }, text: `max_num_batched_tokens ${text}`, short: text, series: machine, lines, chosen };
    return { ...told, slo, rate: most * long, times: each, share, met };
  });
  return { choices: { machine, among: "max_num_batched_tokens" }, atMost: true, points };
};
const ofRecommendations = ({ recommendations, slo }) =>
  (recommendations ?? []).flatMap((each) => [...(each.fleet ? [ofLayouts(each, slo)] : []), ofChunks(each, slo)]);

// [{choices, points, perDevice, atMost}]: sets of points that are weighed against each other.
export const served = (result) => [...ofSimulations(result, result), ...ofSearches(result), ...ofRecommendations(result)];

// Whether the points differ in the load alone, which nobody chooses.
const loads = new Set(["requests/s", "max concurrency", "requests", "machine"]);
export const areLoads = (points) => {
  const differing = facts.differingOf(points);
  return differing.some((key) => key !== "machine") && differing.every((key) => loads.has(key));
};

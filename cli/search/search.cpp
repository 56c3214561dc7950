#include "cli/search/search.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "cli/output/progress.hpp"
#include "cli/search/search_point.hpp"
#include "cli/search/search_report.hpp"
#include "cli/search/search_summary.hpp"
#include "cli/search/sweep_space.hpp"
#include "config/search_chunk.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/output.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

constexpr std::uint64_t kStepsInChunk = 1024;  // some 7 ms
constexpr std::uint64_t kTablePoints = 100'000;

// Points of a chunk: what is lost when the study is killed, and what a thread takes at a time.
[[nodiscard]] std::uint64_t chunk_points(const SweepSpace& space) { return space.is_served() ? 1 : kStepsInChunk; }

[[nodiscard]] std::uint64_t num_chunks(const SweepSpace& space) {
  return (space.size() + chunk_points(space) - 1) / chunk_points(space);
}

[[nodiscard]] sim::ChunkRange shard_of(const SweepSpace& space, int shard, int shards) {
  const std::uint64_t chunks = num_chunks(space);
  const auto part = [&](std::uint64_t number) { return chunks / shards * number + chunks % shards * number / shards; };
  return {part(shard - 1), part(shard)};
}

[[nodiscard]] config::JournalHeader header_of(const SweepSpace& space, int shard, int shards) {
  const sim::ChunkRange chunks = shard_of(space, shard, shards);
  return {space.identity(), space.document(), chunks.begin, chunks.end, shard, shards};
}

[[nodiscard]] std::string price_chunk(const SweepSpace& space, PointPricer& pricer, std::uint64_t chunk) {
  config::SearchChunk priced(space.metrics().size());
  const std::uint64_t points = chunk_points(space), end = std::min(space.size(), (chunk + 1) * points);
  for (std::uint64_t point = chunk * points; point < end; ++point) pricer.price(point, priced);
  return config::encode(priced);
}

void price_chunks(const SweepSpace& space, sim::ChunkRange chunks, const SearchOptions& options,
                  const std::function<void(std::uint64_t, std::string)>& deliver) {
  const auto make_worker = [&space]() -> sim::ChunkWorker {
    return [&space, pricer = std::make_shared<PointPricer>(space)](std::uint64_t chunk) {
      return price_chunk(space, *pricer, chunk);
    };
  };
  sim::work_in_order(chunks, options.workers(), make_worker, deliver);
}

// Nothing where the payload is not that of the chunk.
[[nodiscard]] std::optional<config::SearchChunk> decode_chunk(const SweepSpace& space, std::uint64_t chunk,
                                                              std::string_view payload) {
  const std::uint64_t begin = chunk * chunk_points(space), end = std::min(space.size(), begin + chunk_points(space));
  return config::decode(payload, {space.metrics().size(), end - begin, space.asked()});
}

// Where the chunks of a whole study go, in order.
class Answer {
 public:
  Answer(const SweepSpace& space, const SearchOptions& options) : space_(space), options_(options), summary_(space) {
    if (options.points_file.empty()) return;
    points_.emplace(options.points_file);
    points_->write(points_head(space));
  }

  // False where the payload is not that of the chunk.
  [[nodiscard]] bool add(std::uint64_t chunk, const std::string& payload) {
    const std::uint64_t begin = chunk * chunk_points(space_);
    const auto points = decode_chunk(space_, chunk, payload);
    if (!points) return false;
    summary_.add(begin, *points);
    if (points_) points_->write(points_rows(space_, begin, *points));
    return true;
  }

  void add_all(const config::StudyJournal& journal) {
    for (std::uint64_t index = 0; index < journal.num_chunks(); ++index)
      if (const std::uint64_t chunk = journal.header().begin + index; !add(chunk, journal.read(index)))
        throw InputError(journal.path(), "this journal is damaged in chunk " + std::to_string(index + 1) + " of " +
                                             std::to_string(journal.num_chunks()) +
                                             "; study --salvage keeps those before it and prices the rest anew");
  }

  void finish(Report& report) {
    if (summary_.count(config::Outcome::refused) == space_.size())
      throw InputError(space_.scenario().file, "no point of the sweep can be: " + summary_.refusal());
    if (points_) points_->keep();
    report_search(space_, summary_, options_, report);
  }

 private:
  const SweepSpace& space_;
  const SearchOptions& options_;
  SearchSummary summary_;
  std::optional<files::GrowingFile> points_;
};

void refuse_metric(const config::Scenario& scenario, const std::string& key, const std::string& metric) {
  const auto metrics = search_metrics(scenario.workload.kind);
  if (metric_index(metrics, metric) < metrics.size()) return;
  const bool served = scenario.workload.kind == config::WorkloadKind::serving;
  std::string known;
  for (const std::string_view each : metrics) known.append(known.empty() ? "" : ", ").append(each);
  throw InputError(scenario.file, key + ": " + metric + " is no metric of " + (served ? "served requests" : "a step") +
                                      "; use one of " + known +
                                      (served ? "" : ", or serve requests: give workload.requests"));
}

void refuse_unanswerable(const config::Scenario& scenario, const SearchOptions& options) {
  if (scenario.document.find("objective") != nullptr) refuse_metric(scenario, "objective", scenario.objective.metric);
  for (const config::Constraint& each : scenario.objective.subject_to)
    refuse_metric(scenario, "objective.subject_to", each.metric);
  for (const config::Aim& aim : scenario.pareto) refuse_metric(scenario, "pareto", aim.metric);
  for (const config::Condition& condition : scenario.constraints)
    for (const std::string& name : condition.names())
      if (std::ranges::find(config::metrics(), name, &config::Metric::name) != config::metrics().end())
        refuse_metric(scenario, "constraints", name);
  if (options.shards > 1 && options.journal.empty())
    throw InputError("--shard", "needs --journal FILE: the shard's part of the study, for `dculab merge`");
  if (options.resume && options.journal.empty()) throw InputError("--resume", "needs --journal FILE");
  if (options.salvage && options.journal.empty()) throw InputError("--salvage", "needs --journal FILE");
  if (options.shards > 1 && !options.points_file.empty())
    throw InputError("--points", "is written by `dculab merge` once all shards are there");
}

void report_shard(const SweepSpace& space, const config::StudyJournal& journal, Report& report) {
  const config::JournalHeader& header = journal.header();
  const std::uint64_t points = chunk_points(space);
  const std::uint64_t begin = header.begin * points, end = std::min(space.size(), header.end * points);
  report.heading.push_back("shard " + std::to_string(header.shard) + "/" + std::to_string(header.shards) + ": " +
                           std::to_string(end - begin) + " of " + std::to_string(space.size()) + " points are in " +
                           journal.path() + "; when all shards are there: dculab merge");
  report.json["shard"] = {{"shard", header.shard},
                          {"shards", header.shards},
                          {"first_point", begin},
                          {"points", end - begin},
                          {"all_points", space.size()}};
}

}  // namespace

int SearchOptions::workers() const {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

config::JournalStart SearchOptions::journal_start() const {
  if (salvage) return config::JournalStart::salvage;
  return resume ? config::JournalStart::resume : config::JournalStart::create;
}

bool asks_for_search(const config::Scenario& scenario) {
  const auto is_for_search = [](const config::SweepAxis& axis) {
    return axis.draws.has_value() || axis.key == "machine" || axis.key.starts_with("machine.");
  };
  return scenario.document.find("objective") != nullptr || !scenario.pareto.empty() || !scenario.constraints.empty() ||
         std::ranges::any_of(scenario.sweep, is_for_search) || config::num_points(scenario.sweep) > kTablePoints;
}

void search(const config::Scenario& scenario, const SearchOptions& options, Report& report) {
  refuse_unanswerable(scenario, options);
  const SweepSpace space(scenario);
  std::optional<config::StudyJournal> journal;
  if (!options.journal.empty())
    journal.emplace(options.journal, header_of(space, options.shard, options.shards), options.journal_start(),
                    [&space](std::uint64_t chunk, std::string_view payload) {
                      return decode_chunk(space, chunk, payload).has_value();
                    });
  if (journal && journal->num_dropped_bytes() > 0)
    std::cerr << "dculab: " << printable(journal->path()) << ": " << journal->num_chunks() << " of "
              << journal->header().end - journal->header().begin << " chunks are whole and kept; "
              << journal->num_dropped_bytes() << " bytes behind them are dropped\n";
  std::optional<Answer> answer;
  if (options.shards == 1) answer.emplace(space, options);
  sim::ChunkRange chunks = shard_of(space, options.shard, options.shards);
  ProgressBar bar;
  const std::uint64_t begin = chunks.begin;
  if (journal) {
    if (answer) answer->add_all(*journal);
    chunks.begin += journal->num_chunks();
  }
  price_chunks(space, chunks, options, [&](std::uint64_t chunk, const std::string& payload) {
    if (journal) journal->append(payload);
    if (answer && !answer->add(chunk, payload)) throw std::logic_error("a chunk was priced that cannot be read");
    bar.update("pricing points", static_cast<double>(chunk + 1 - begin) / static_cast<double>(chunks.end - begin));
  });
  if (journal) journal->sync();
  bar.clear();
  if (answer)
    answer->finish(report);
  else
    report_shard(space, *journal, report);
}

void merge(const std::vector<std::string>& files, const SearchOptions& options, Report& report) {
  std::vector<std::unique_ptr<config::StudyJournal>> journals;
  for (const std::string& file : files) journals.push_back(std::make_unique<config::StudyJournal>(file));
  const config::JournalHeader& first = journals.front()->header();
  const SweepSpace space(config::read_scenario(files.front(), config::parse_yaml(files.front(), first.document)));
  if (space.identity() != first.identity)
    throw InputError(files.front(), "was written by another build of dculab, or its machine or model is another here");
  std::ranges::stable_sort(journals, {}, [](const auto& journal) { return journal->header().shard; });
  for (std::size_t index = 0; index < journals.size(); ++index) {
    const config::StudyJournal& journal = *journals[index];
    const int shard = static_cast<int>(index) + 1;
    if (journal.header().identity != first.identity || journal.header().shards != first.shards)
      throw InputError(journal.path(), "is of another study than " + files.front());
    if (index > 0 && journal.header().shard == journals[index - 1]->header().shard)
      throw InputError(journal.path(), "is the same shard as " + journals[index - 1]->path() + "; give it once");
    if (!journal.header().fits(header_of(space, shard, first.shards)))
      throw InputError("merge", "shard " + std::to_string(shard) + "/" + std::to_string(first.shards) + " is missing");
    if (!journal.is_complete())
      throw InputError(journal.path(), "has " + std::to_string(journal.num_chunks()) + " of " +
                                           std::to_string(journal.header().end - journal.header().begin) +
                                           " chunks; go on with it: study --journal --resume");
  }
  if (journals.size() < static_cast<std::size_t>(first.shards))
    throw InputError(
        "merge", "shard " + std::to_string(journals.size() + 1) + "/" + std::to_string(first.shards) + " is missing");
  report.heading.push_back(space.scenario().question);
  for (std::string& line : study::whose_kernels(space.scenario())) report.heading.push_back(std::move(line));
  report.json["question"] = space.scenario().question;
  add_warnings(report, study::model_notes(space.scenario()));
  Answer answer(space, options);
  for (const auto& journal : journals) answer.add_all(*journal);
  answer.finish(report);
}

}  // namespace dculab::cli

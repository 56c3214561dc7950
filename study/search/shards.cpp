#include "study/search/shards.hpp"

#include <algorithm>
#include <utility>

#include "config/yaml_text.hpp"
#include "core/error.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] InputError missing_shard(std::size_t shard, int shards) {
  return {"merge", "shard " + std::to_string(shard) + "/" + std::to_string(shards) + " is missing"};
}

}  // namespace

ShardJournals::ShardJournals(const std::vector<std::string>& files) {
  for (const std::string& file : files) journals_.push_back(std::make_unique<config::StudyJournal>(file));
  const config::JournalHeader& first = journals_.front()->header();
  space_ = std::make_unique<SweepSpace>(
      config::read_scenario(files.front(), config::parse_yaml(files.front(), first.document)));
  if (space_->identity() != first.identity)
    throw InputError(files.front(), "was written by another build of dculab, or its machine or model is another here");
  std::ranges::stable_sort(journals_, {}, [](const auto& journal) { return journal->header().shard; });
  for (std::size_t index = 0; index < journals_.size(); ++index) require_shard(index, files.front(), first);
  if (journals_.size() < static_cast<std::size_t>(first.shards))
    throw missing_shard(journals_.size() + 1, first.shards);
}

void ShardJournals::require_shard(std::size_t index, const std::string& first_file,
                                  const config::JournalHeader& first) const {
  const config::StudyJournal& journal = *journals_[index];
  const int shard = static_cast<int>(index) + 1;
  if (journal.header().identity != first.identity || journal.header().shards != first.shards)
    throw InputError(journal.path(), "is of another study than " + first_file);
  if (index > 0 && journal.header().shard == journals_[index - 1]->header().shard)
    throw InputError(journal.path(), "is the same shard as " + journals_[index - 1]->path() + "; give it once");
  if (!journal.header().fits(header_of(*space_, shard, first.shards))) throw missing_shard(index + 1, first.shards);
  if (!journal.is_complete())
    throw InputError(journal.path(), "has " + std::to_string(journal.num_chunks()) + " of " +
                                         std::to_string(journal.header().end - journal.header().begin) +
                                         " chunks; go on with it: study --journal --resume");
}

SearchSummary ShardJournals::summary(const OnPoints& on_points) const {
  ChunkReader reader(*space_, on_points);
  for (const auto& journal : journals_) reader.add_all(*journal);
  return std::move(reader).finish();
}

}  // namespace dculab::study

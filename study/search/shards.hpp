// The journals of all shards of a search, put together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "study/search/chunks.hpp"

namespace dculab::study {

class ShardJournals {
 public:
  // Throws InputError when one is missing, there twice, unfinished or of another study. At least one file.
  explicit ShardJournals(const std::vector<std::string>& files);

  [[nodiscard]] const SweepSpace& space() const { return *space_; }

  // Throws InputError where a journal is damaged, or no point can be.
  [[nodiscard]] SearchSummary summary(const OnPoints& on_points = {}) const;

 private:
  void require_shard(std::size_t index, const std::string& first_file, const config::JournalHeader& first) const;

  std::vector<std::unique_ptr<config::StudyJournal>> journals_;  // by shard
  std::unique_ptr<SweepSpace> space_;
};

}  // namespace dculab::study

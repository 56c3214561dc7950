#include "study/search/search_choices.hpp"

#include "core/error.hpp"

namespace dculab::study {

SearchOptions SearchChoices::search_options() const {
  SearchOptions options = pricing;
  options.start = salvage  ? config::JournalStart::salvage
                  : resume ? config::JournalStart::resume
                           : config::JournalStart::create;
  return options;
}

void refuse_incomplete(const SearchChoices& choices) {
  const bool has_journal = !choices.pricing.journal.empty(), is_shard = choices.pricing.shards > 1;
  if (is_shard && !has_journal)
    throw InputError("--shard", "needs --journal FILE: the shard's part of the study, for `dculab merge`");
  if (choices.resume && !has_journal) throw InputError("--resume", "needs --journal FILE");
  if (choices.salvage && !has_journal) throw InputError("--salvage", "needs --journal FILE");
  if (is_shard && !choices.points_file.empty())
    throw InputError("--points", "is written by `dculab merge` once all shards are there");
}

std::string files_option(const SearchChoices& choices) {
  if (!choices.pricing.journal.empty()) return "--journal";
  if (choices.resume) return "--resume";
  if (choices.salvage) return "--salvage";
  if (choices.pricing.shards > 1) return "--shard";
  return choices.points_file.empty() ? "" : "--points";
}

std::string search_option(const SearchChoices& choices) {
  const std::string option = files_option(choices);
  return option.empty() && choices.pricing.threads != 0 ? "--threads" : option;
}

}  // namespace dculab::study

// The fields of what drafts are worth.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "config/draft_shape_text.hpp"
#include "fields/field_list.hpp"
#include "present/study/speculation_report.hpp"

namespace dculab {

template <>
struct FieldList<study::DraftOutcome> {
  using Outcome = study::DraftOutcome;
  static constexpr std::string_view id = "draft_outcome";
  static constexpr std::string_view doc = "A step that verifies drafts, beside one without.";
  static constexpr auto fields = std::tuple(
      field("batch", "sequences of the step", unit::count, &Outcome::batch),
      field("draft", "its shape: how many tokens of a chain, or the paths of a tree",
            [](const Outcome& outcome) { return config::draft_shape_text(outcome.shape); }),
      field("num_speculative_tokens", "how deep it is", unit::tokens,
            [](const Outcome& outcome) { return outcome.shape.depth(); }),
      field("draft_tokens", "tokens of it that are verified", unit::tokens,
            [](const Outcome& outcome) { return outcome.shape.num_tokens(); }),
      field("plain_step_seconds", "a step of one token of each sequence",
            [](const Outcome& outcome) { return outcome.times.plain; }),
      field("verify_step_seconds", "a step that verifies a draft of each sequence",
            [](const Outcome& outcome) { return outcome.times.verify; }),
      field("drafting_seconds", "before that step", [](const Outcome& outcome) { return outcome.times.drafting; }),
      field("expected_tokens", "of a sequence and step, the model's own among them", unit::tokens, &Outcome::tokens),
      field("speed_up", "expected tokens * plain step / (verifying + drafting)", unit::ratio, &Outcome::speed_up),
      field("interval", "of the speed-up, 90 %", unit::ratio,
            [](const Outcome& outcome) { return interval(outcome.low, outcome.high); }),
      field("fits", "the batch, in memory, with the drafter beside the model", &Outcome::fits));
};

template <>
struct FieldList<study::DraftAdvice::OfBatch> {
  using OfBatch = study::DraftAdvice::OfBatch;
  static constexpr std::string_view id = "draft_of_batch";
  static constexpr std::string_view doc =
      "How many tokens to draft at a batch; of the best draft, where one pays, all.";
  static constexpr auto fields =
      std::tuple(field("batch", "sequences of a step", unit::count, &OfBatch::batch),
                 field("num_speculative_tokens", "to draft; 0: none", unit::tokens, [](const OfBatch&) { return 0; }),
                 field("speed_up", "of a decode step; 1 without drafts", unit::ratio, [](const OfBatch&) { return 1; }),
                 inlined(&OfBatch::best));
};

template <>
struct FieldList<study::DraftAdvice::OfShape> {
  using OfShape = study::DraftAdvice::OfShape;
  static constexpr std::string_view id = "break_even";
  static constexpr std::string_view doc = "Up to which batch a draft pays.";
  static constexpr auto fields = std::tuple(
      field("draft", "its shape", [](const OfShape& of_shape) { return config::draft_shape_text(of_shape.shape); }),
      field("break_even_batch", "the largest at which it pays; 0: it pays at none", unit::count,
            [](const OfShape& of_shape) { return of_shape.break_even.batch; }),
      field("pays_at_all", "it pays at all batches that fit in memory",
            [](const OfShape& of_shape) { return of_shape.break_even.is_all; }));
};

template <>
struct FieldList<study::DraftAdvice> {
  using Advice = study::DraftAdvice;
  static constexpr std::string_view id = "draft_advice";
  static constexpr std::string_view doc =
      "How many tokens to draft, at one point of the axes other than batch and draft.";
  static constexpr auto fields =
      std::tuple(field("choices", "that point: keys of the scenario and their values", &Advice::others),
                 field("batches", "by batch", &Advice::batches), field("drafts", "by draft", &Advice::shapes));
};

template <>
struct FieldList<study::ReportedDraft> {
  using Draft = study::ReportedDraft;
  static constexpr std::string_view id = "reported_draft";
  static constexpr std::string_view doc = "A speed-up by drafts that somebody published, beside ours.";
  static constexpr auto fields = std::tuple(
      field("variant", "its name in the scenario", &Draft::variant),
      field("rate", "of acceptance, of a chain that yields as many tokens", unit::share, &Draft::rate),
      field("cost", "of a draft step, over a plain one", unit::ratio, &Draft::cost),
      field("closed_form", "speed-up (1 - a^(g+1)) / (1 - a) / (g c + 1)", unit::ratio, &Draft::closed_form),
      field("priced", "with predicted steps", &Draft::outcome),
      field("simulated", "TPOT of served requests without drafts, over that with them", unit::ratio, &Draft::simulated),
      field("reported", "as published", unit::ratio, &Draft::reported));
};

template <>
struct FieldList<present::StudiedDraft> {
  using Draft = present::StudiedDraft;
  static constexpr std::string_view id = "studied_draft";
  static constexpr std::string_view doc = "A point of a sweep of drafts.";
  static constexpr auto fields =
      std::tuple(field("choices", "keys of the scenario and their values", &Draft::choices), inlined(&Draft::outcome));
};

}  // namespace dculab

// The documents of `dculab study` and `dculab merge`: a body for each kind of question, in a frame that all have. They
// are what report.json has in the end; study_report.hpp puts it together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "present/measure/measured_serving_fields.hpp"
#include "present/study/comparison_fields.hpp"
#include "present/study/predicted_fields.hpp"
#include "present/study/search_fields.hpp"
#include "present/values/subject.hpp"

namespace dculab::present {

// A study that another one is followed by.
template <class Body>
struct FollowingStudy {
  Body body;
  std::optional<std::vector<std::string>> warnings;
  std::string question;
  std::optional<Subject> subject;
};

using AnyFollowingStudy =
    std::variant<FollowingStudy<ReportedSearch>, FollowingStudy<StepStudies>, FollowingStudy<DesignStudies>,
                 FollowingStudy<DraftStudies>, FollowingStudy<ReportedDraftStudies>,
                 FollowingStudy<ReportedComparisons>, FollowingStudy<GroupStudies>>;

template <class Body>
struct Study {
  std::string question;
  std::optional<Subject> subject;
  std::optional<std::vector<std::string>> warnings;
  Body body;
  std::optional<std::vector<AnyFollowingStudy>> then;
  std::optional<std::vector<std::string>> conclusion;
};

using AnyStudy = std::variant<Study<ReportedSearch>, Study<ReportedShards>, Study<StepStudies>, Study<DesignStudies>,
                              Study<DraftStudies>, Study<ReportedDraftStudies>, Study<ReportedComparisons>,
                              Study<GroupStudies>, Study<study::MeasuredSweep>, Study<ReportedSpeedUps>,
                              Study<study::MeasuredDrafts>, Study<study::ServedStudy>>;

// Of several scenarios.
struct SeveralStudies {
  std::vector<AnyStudy> studies;
  std::optional<std::vector<std::string>> conclusion;
};

// A study, or several.
template <class... Studies>
[[nodiscard]] std::variant<Studies..., SeveralStudies> one_or_several(const std::variant<Studies...>*);
using StudyDocument = decltype(one_or_several(static_cast<const AnyStudy*>(nullptr)));

}  // namespace dculab::present

namespace dculab {

template <class Body>
struct FieldList<present::FollowingStudy<Body>> {
  using Following = present::FollowingStudy<Body>;
  static inline const std::string id = "following_" + std::string(FieldList<Body>::id);
  static constexpr std::string_view doc = FieldList<Body>::doc;
  static constexpr auto fields = std::tuple(
      inlined(&Following::body), field("warnings", "what makes the figures less than they seem", &Following::warnings),
      field("question", "the scenario's", &Following::question),
      field("subject", "what all its figures are about", &Following::subject));
};

template <class Body>
struct FieldList<present::Study<Body>> {
  using Study = present::Study<Body>;
  static inline const std::string id = "study_of_" + std::string(FieldList<Body>::id);
  static constexpr std::string_view doc = FieldList<Body>::doc;
  static constexpr std::string_view csv_rows = csv_rows_of<Body>();
  static constexpr auto fields = std::tuple(
      field("question", "the scenario's", &Study::question),
      field("subject", "what all its figures are about", &Study::subject),
      field("warnings", "what makes the figures less than they seem", &Study::warnings), inlined(&Study::body),
      field("then", "studies of the scenarios that the first one names", &Study::then),
      field("conclusion", "the answer in sentences", &Study::conclusion));
};

template <>
struct FieldList<present::SeveralStudies> {
  static constexpr std::string_view id = "studies";
  static constexpr std::string_view doc = "Studies of several scenarios.";
  static constexpr auto fields =
      std::tuple(field("studies", "in the order asked for", &present::SeveralStudies::studies),
                 field("conclusion", "the answers in sentences", &present::SeveralStudies::conclusion));
};

}  // namespace dculab

// A model folder with fewer KV heads, or none.
#include "study/measure/regrouped_folder.hpp"

#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

namespace dculab::study {
namespace {

using engine::GroupingMethod;

RegroupQuestion regroup_question(const files::test::TemporaryFolder& folder, GroupingMethod method) {
  RegroupQuestion question;
  question.model = kTextModel;
  question.options.method = method;
  question.options.num_key_value_heads = 1;
  question.num_threads = 1;
  question.folder = folder.path("model");
  return question;
}

RegroupedFolder regroup_quietly(const RegroupQuestion& question) {
  return regroup_folder(question, [](const std::string&, double) {});
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "Once upon a time there were " + std::to_string(i) + " foxes in the forest.\n";
  return text;
}

TEST_CASE("what options are called is read back as what they are") {
  for (const GroupingMethod method : engine::kGroupingMethods) CHECK_FALSE(name(method).empty());
  CHECK(name(GroupingMethod::key_norm) == "key-norm");
  CHECK(name(engine::HeadMerge::fitted) == "fitted");
  CHECK(name(engine::LostError::activations) == "activations");
  CHECK(name(engine::HeadSimilarity::distance) == "distance");
  CHECK(name(engine::ComparedHeads::key_value) == "kv");
}

TEST_CASE("neighbours become one without a text, and the folder has the new number of heads") {
  const files::test::TemporaryFolder folder;
  const RegroupedFolder made = regroup_quietly(regroup_question(folder, GroupingMethod::mean));
  CHECK(made.before.heads().num_key_value_heads > 1);
  CHECK(made.calibration_tokens == 0);
  CHECK(made.result.layers.size() == static_cast<std::size_t>(made.before.num_layers()));
  CHECK(read_model_shape(folder.path("model")).heads().num_key_value_heads == 1);
}

TEST_CASE("similar heads are found on the text, of which no more is read than asked for") {
  const files::test::TemporaryFolder folder;
  RegroupQuestion question = regroup_question(folder, GroupingMethod::similarity);
  question.calibration = folder.write("text.txt", long_text());
  question.calibration_tokens = 100;
  double last = 0;
  const RegroupedFolder made = regroup_folder(question, [&last](const std::string& label, double share) {
    CHECK(label == "comparing heads");
    last = share;
  });
  CHECK(last == 1);
  CHECK(made.calibration_tokens == 100);
  CHECK(made.result.layers.front().similarity.inside);
}

TEST_CASE("what cannot be regrouped is refused, and no folder is left behind") {
  const files::test::TemporaryFolder folder;
  const auto refused = [&](const RegroupQuestion& question, const std::string& why) {
    CHECK_THROWS_WITH(regroup_quietly(question), ContainsSubstring(why));
    CHECK_FALSE(std::filesystem::exists(folder.path("model")));
  };
  refused(regroup_question(folder, GroupingMethod::similarity), "--calibration is missing");
  RegroupQuestion compared = regroup_question(folder, GroupingMethod::similarity);
  compared.calibration = folder.write("few.txt", "Once upon a time.");
  refused(compared, "too few to compare heads; give at least 64");
  compared.options.compared = engine::ComparedHeads::query;
  compared.options.similarity = engine::HeadSimilarity::svd;
  refused(compared, "--similarity svd is of K and V; with --compare query use");
  RegroupQuestion many = regroup_question(folder, GroupingMethod::mean);
  many.options.num_key_value_heads = 3;
  refused(many, "--kv-heads");
}

}  // namespace
}  // namespace dculab::study

// What a question reads is not written by its answer, under whatever name; tests/cli/file_options_test.cpp has the
// rest.
#include "study/scenario/named_files.hpp"

#include <filesystem>

#include "files/input.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

TEST_CASE("files that are only read may be named twice; those that are written may not") {
  const files::test::TemporaryFolder folder;
  const std::string machine = folder.write("m.yaml", "x"), answer = folder.path("answer");
  CHECK(add_named_file({"--machine", machine, FileUse::read}).empty());
  CHECK(add_named_file({"--like", machine, FileUse::read}).empty());
  CHECK_THAT(add_named_file({"--output", machine, FileUse::written}), ContainsSubstring("read by --machine"));
  CHECK(add_named_file({"--output", answer, FileUse::written}).empty());
  CHECK_THAT(add_named_file({"--report", folder.path("./answer"), FileUse::written}),
             ContainsSubstring("written by --output"));
  CHECK(add_named_file({"--output", "/dev/null", FileUse::written}).empty());
  CHECK(add_named_file({"--report", "/dev/null", FileUse::written}).empty());
}

TEST_CASE("a model folder stands for the files that models are made of, there or not") {
  const files::test::TemporaryFolder folder;
  const std::string config = folder.write("config.json", "{}");
  CHECK(add_named_file({"--trace", folder.path("notes.txt"), FileUse::written}).empty());
  CHECK_NOTHROW(require_unwritten(folder.path("")));
  CHECK(add_named_file({"--report", folder.path("tokenizer.json"), FileUse::written}).empty());
  CHECK_THROWS_AS(require_unwritten(folder.path("")), files::ReservedFileError);
}

}  // namespace
}  // namespace dculab::study

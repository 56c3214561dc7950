#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/json_schema.hpp"

extern char** environ;

namespace dculab::cli::test {

using dculab::test::schema_errors;

namespace {

Finished run(Arguments command) {
  const Folder folder;
  const std::string out = folder.path("out"), err = folder.path("err");
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, argv.front(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  REQUIRE(failure == 0);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out), read(err)};
}

}  // namespace

Finished run_dculab(const Arguments& arguments) {
  Arguments command{DCULAB_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command);
}

Finished run_in_shell(const std::string& script, const Arguments& arguments) {
  Arguments command{"/bin/sh", "-c", script, "sh", DCULAB_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command);
}

Json schema_of(const std::string& document) {
  const Finished done = run_dculab({"schema", document});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  return Json::parse(done.out);
}

Json run_for_json(Arguments arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Finished done = run_dculab(arguments);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  Json document = Json::parse(done.out);
  static std::map<std::string, Json> schemas;  // by document
  const auto id = document.at("schema").get<std::string>();
  if (!schemas.contains(id)) schemas[id] = schema_of(id);
  CHECK(schema_errors(schemas.at(id), document) == std::vector<std::string>{});
  return document;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "dculab-test-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  root_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

std::vector<std::string> Folder::entries() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string one_published_point() {
  const std::string all = read(DCULAB_SOURCE_DIR "/tests/data/published_points.csv");
  return all.substr(0, all.find('\n', all.find('\n') + 1) + 1);
}

void check_refused(const Arguments& arguments, const std::vector<std::string>& parts) {
  std::string line;
  for (const std::string& argument : arguments) line += argument + " ";
  INFO(line);
  check_refusal(run_dculab(arguments), parts);
}

void check_refusal(const Finished& done, const std::vector<std::string>& parts) {
  INFO(done.err);
  CHECK(done.exit_code == 2);
  CHECK(done.out.empty());
  CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  for (const std::string& part : parts) CHECK_THAT(done.err, ContainsSubstring(part));
}

}  // namespace dculab::cli::test

// What the page calls: bindings/web/simulator.hpp, with texts as C has them.
#include <emscripten/emscripten.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bindings/web/simulator.hpp"

extern "C" {

// The answer stays until the next call.
EMSCRIPTEN_KEEPALIVE const char* dculab_answer(const char* question) {
  static std::string kept;
  kept = dculab::web::answer(question);
  return kept.c_str();
}

// Makes a file, with its folders, of those that are read by name.
EMSCRIPTEN_KEEPALIVE void dculab_put_file(const char* path, const char* text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
}

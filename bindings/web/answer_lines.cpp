// The same simulator without WebAssembly: a question a line in, an answer a line out. Tests compare the two.
#include <iostream>
#include <string>

#include "bindings/web/simulator.hpp"

int main() {
  std::string question;
  while (std::getline(std::cin, question)) std::cout << dculab::web::answer(question) << '\n' << std::flush;
}

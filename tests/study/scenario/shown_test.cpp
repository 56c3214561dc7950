// What a name or a file stands for, and which of it can be changed.
#include "study/scenario/shown.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kSource = DCULAB_SOURCE_DIR;

TEST_CASE("a name or a file is a machine, a stack, a model or a scenario") {
  CHECK(std::get<ShownMachine>(find_shown("z100", {})).machine.name == "z100");
  CHECK(std::get<ShownMachine>(find_shown(kSource + "/hwmodels/z100.yaml", {})).machine.name == "z100");
  CHECK_FALSE(std::get<ShownStack>(find_shown("vllm-triton", {})).stack.description.empty());
  CHECK_FALSE(std::get<ShownStack>(find_shown(kSource + "/stacks/vllm-triton.yaml", {})).stack.description.empty());
  CHECK(std::get<ShownModel>(find_shown("llama-3-8b", {})).model.heads().num_key_value_heads == 8);
  CHECK(std::get<ShownModel>(find_shown(kSource + "/scenarios/models/llama-3-8b", {})).model.name == "llama-3-8b");
  CHECK_FALSE(std::get<ShownScenario>(find_shown("llama3_on_dcu", {})).scenario.question.empty());
  CHECK(try_find_shown("z100")->filename() == "z100.yaml");
  CHECK_FALSE(try_find_shown("nothing-like-it"));
  CHECK_THROWS_WITH(find_shown("nothing-like-it", {}), ContainsSubstring("nothing is called 'nothing-like-it'"));
}

TEST_CASE("figures of a machine and keys of a scenario are set, nothing else is") {
  const auto clock = [](const Shown& shown) { return std::get<ShownMachine>(shown).machine.clock; };
  CHECK(clock(find_shown("z100", {"machine.clock=1000 MHz"})) == Hertz(1e9));
  CHECK(clock(find_shown("z100", {})) != Hertz(1e9));
  const auto shown = std::get<ShownScenario>(find_shown("llama3_on_dcu", {"kv_cache.block_size=64"}));
  CHECK(shown.options.block_size == 64);
  CHECK_THROWS_WITH(find_shown("z100", {"kv_cache.block_size=64"}), ContainsSubstring("'z100' is a machine"));
  CHECK_THROWS_WITH(find_shown("vllm-triton", {"stack.kernels_per_op=2"}),
                    ContainsSubstring("'vllm-triton' is a stack"));
  CHECK_THROWS_WITH(find_shown("llama-3-8b", {"weights=f16"}), ContainsSubstring("'llama-3-8b' is a model"));
  CHECK_THROWS_WITH(find_shown("z100", {"machine.no_such_figure=1"}), ContainsSubstring("no_such_figure"));
}

TEST_CASE("a scenario's options are those of the stack on its first machine") {
  const auto options = [](const char* name) { return std::get<ShownScenario>(find_shown(name, {})).options; };
  CHECK(options("llama3_on_dcu").activation_dtype == Dtype::f16);
  CHECK(options("serving/chat_on_cpu").activation_dtype == Dtype::f32);
}

}  // namespace
}  // namespace dculab::study

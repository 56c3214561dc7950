// A user asks how an engine should serve their model on their machine.
// Usage: recommend MODEL_FOLDER MACHINE.yaml
#include <cstdio>
#include <string>

#include "config/yaml_text.hpp"
#include "study/decide/serving_recommendation.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string model = argv[1], machine = argv[2];
  dculab::study::RecommendationQuestion question;
  question.scenario = dculab::config::read_scenario(
      "question", dculab::config::parse_yaml(
                      "question", "schema: dculab/scenario/1\nquestion: Which block size?\nmodel: " + model +
                                      "\nmachine: " + machine +
                                      "\nworkload: {requests: 64, prompt_tokens: 512, output_tokens: 64}\n"));
  const auto found = dculab::study::recommend_serving(question, machine);
  std::printf("block_size %d, %.3g output tokens/s\n", found.setting.block_size, found.served.output_tokens_per_second);
  return found.served.output_tokens_per_second > 0 ? 0 : 1;
}

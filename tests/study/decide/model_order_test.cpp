// The order of models along the batch, on times made up by hand.
#include "study/decide/model_order.hpp"

#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// A step of `fixed` and `each` seconds for each sequence.
ComparedModel takes(const char* name, double fixed, double each, std::int64_t room = 1000) {
  return {name, room, [fixed, each](int batch) { return Seconds(fixed + each * batch); }};
}

TEST_CASE("the batch from which another model is faster lies between those that are asked about") {
  // 10 + n above 14 + n / 2 by more than 1 % from n = 9: 19 / 18.5
  const std::vector changes = order_changes(std::vector{takes("a", 10, 1), takes("b", 14, 0.5)}, std::vector{1, 64});
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].batch == 9);
  CHECK(changes[0].faster == "b");
  CHECK(changes[0].slower == "a");
  CHECK(order_changes(std::vector{takes("b", 14, 0.5), takes("a", 10, 1)}, std::vector{1, 64})[0].faster == "b");
}

TEST_CASE("a change lasts until the two change places again") {
  const ComparedModel line = takes("line", 10, 1);
  const ComparedModel steps{"steps", 1000, [](int batch) { return Seconds(batch < 20 || batch > 200 ? 1000 : 1); }};
  const std::vector changes = order_changes(std::vector{line, steps}, std::vector{1, 64, 128, 512});
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].faster == "steps");
  CHECK(changes[0].batch == 20);
  CHECK(changes[0].last == 128);
  CHECK(changes[1].faster == "line");
  CHECK(changes[1].batch == 201);
  CHECK(changes[1].last == 512);
}

TEST_CASE("models that are never told apart, or never change places, give nothing") {
  CHECK(order_changes(std::vector{takes("a", 10, 1), takes("b", 9, 0.5)}, std::vector{1, 64}).empty());
  CHECK(order_changes(std::vector{takes("a", 10, 1), takes("b", 10.05, 1)}, std::vector{1, 64}).empty());
  CHECK(order_changes(std::vector{takes("a", 10, 1), takes("b", 14, 0.5)}, std::vector<int>{}).empty());
}

TEST_CASE("a batch counts as far as both models have room for it") {
  const auto with_room = [](std::int64_t room) {
    return order_changes(std::vector{takes("a", 10, 1), takes("b", 14, 0.5, room)}, std::vector{1, 64});
  };
  CHECK(with_room(8).empty());
  REQUIRE(with_room(12).size() == 1);
  CHECK(with_room(12)[0].batch == 9);
  CHECK(with_room(0).empty());
}

TEST_CASE("changes are told in order of their batch") {
  const std::vector changes = order_changes(std::vector{takes("a", 10, 1), takes("b", 14, 0.5), takes("c", 11, 0.9)},
                                            std::vector{1, 8, 64, 512});
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].batch < changes[1].batch);
  CHECK(changes[1].batch < changes[2].batch);
}

}  // namespace
}  // namespace dculab::study

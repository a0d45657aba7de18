// Nets whose head is not one linear layer on their features, which methods cannot read.
#include "strategies/shared/linear_head.hpp"
#include "tests/support/nets.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

/// Key named by the error; empty if there is none.
std::string blamed_of(const std::string& name, const model_keys& keys, std::array<std::int64_t, 3> shape) {
  const auto findings = without_linear_head(*kind_with(name, keys)->build(shape, 4).value(), "it is read");
  return findings.empty() ? "" : findings.front().where;
}

} // namespace

TEST_CASE("a head of one linear layer on all features is accepted") {
  CHECK(blamed_of("mlp", {{"hidden", "5"}}, {1, 1, 12}).empty());
  CHECK(blamed_of("lenet", {}, {1, 28, 28}).empty());
  CHECK(blamed_of("vit", {{"width", "8"}, {"heads", "2"}, {"depth", "1"}, {"patch", "4"}}, {1, 8, 8}).empty());
  CHECK(blamed_of("identity", {}, {1, 1, 12}).empty()); // has no head
}

TEST_CASE("heads with hidden layers, embedding classifiers and heads of tokens are refused") {
  CHECK(blamed_of("mlp", {{"hidden", "5"}, {"head_hidden", "6"}}, {1, 1, 12}) == "model.head_hidden");
  const model_keys small{{"filters", "3, 4"}, {"hidden", "3"}, {"embedding", "5"}, {"classifier", "6"}};
  CHECK_FALSE(blamed_of("ebr", small, {1, 16, 16}).empty());
  CHECK_FALSE(blamed_of("vee", small, {1, 16, 16}).empty());
  auto convit = kind_with("convit", {{"width", "8"}, {"heads", "2"}, {"depth", "2"}, {"patch", "4"}});
  convit->set_tasks({{0, 2}, {2, 4}}); // one token and one head each
  const auto findings = without_linear_head(*convit->build({1, 8, 8}, 4).value(), "it is read");
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().where == "model.name");
}

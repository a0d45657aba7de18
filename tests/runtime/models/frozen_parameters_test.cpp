#include "runtime/models/frozen_parameters.hpp"
#include "tests/support/nets.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Names of the frozen parameters of the net for these entries of model.frozen.
std::vector<std::string> held_by(const model_ref& net, const std::vector<std::string>& entries) {
  const auto frozen = with_frozen(net, entries);
  REQUIRE(frozen);
  std::vector<std::string> names;
  for (const auto& entry : (*frozen)->layout())
    if (entry.held) {
      CHECK(entry.frozen);
      names.push_back(entry.name);
    }
  return names;
}

std::vector<std::string> errors_of(const model_ref& net, const std::vector<std::string>& entries) {
  const auto frozen = with_frozen(net, entries);
  return frozen ? std::vector<std::string>{} : frozen.error();
}

using names = std::vector<std::string>;

} // namespace

TEST_CASE("model.frozen selects parameters, layers with their running statistics, and patterns") {
  const auto net = net_of("resnet8", {3, 8, 8}, 6);
  CHECK(held_by(net, {}).empty());
  CHECK(held_by(net, {"conv1.weight"}) == names{"conv1.weight"});
  CHECK(held_by(net, {"bn1.weight", "bn1.bias"}) == names{"bn1.weight", "bn1.bias"});
  CHECK(held_by(net, {"bn1"}) == names{"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"});
  CHECK(held_by(net, {"layer1.0.bn*.bias", "conv1"}) ==
        names{"conv1.weight", "layer1.0.bn1.bias", "layer1.0.bn2.bias"});
  CHECK(held_by(net, {"*"}).size() == net->layout().size());
  CHECK(held_by(net, {"*conv*weight"}).front() == "conv1.weight");
  const auto all_of_layer1 = held_by(net, {"layer1"});
  CHECK(std::all_of(all_of_layer1.begin(), all_of_layer1.end(),
                    [](const auto& name) { return name.starts_with("layer1."); }));
  for (const auto& entry : net->layout()) // the net itself does not change
    CHECK_FALSE(entry.held);
}

TEST_CASE("an entry of model.frozen that matches nothing is an error with its location and the likely name") {
  const auto net = net_of("resnet8", {3, 8, 8}, 6);
  const auto errors = errors_of(net, {"conv1.weight", "conv1.weigth", "layer9", "conv", ""});
  REQUIRE(errors.size() == 4);
  CHECK_THAT(errors[0], ContainsSubstring("model.frozen[1] = \"conv1.weigth\"") &&
                            ContainsSubstring("did you mean \"conv1.weight\"?"));
  CHECK_THAT(errors[1], ContainsSubstring("model.frozen[2] = \"layer9\"") &&
                            ContainsSubstring("its parameters are conv1.weight, bn1.weight"));
  CHECK_THAT(errors_of(net, {"bn1.running_mean"}).at(0), ContainsSubstring("\"bn1.running_*\""));
  CHECK(errors_of(net, {"bn1.running_*"}).empty());
}

TEST_CASE("batch norms with frozen running statistics do not couple rows") {
  const auto net = net_of("resnet8", {3, 8, 8}, 6);
  CHECK(net->couples_batch_rows());
  CHECK(with_frozen(net, {"*bn*.weight", "*bn*.bias"}).value()->couples_batch_rows());
  CHECK(with_frozen(net, {"bn1"}).value()->couples_batch_rows());
  CHECK_FALSE(with_frozen(net, {"*.running_*"}).value()->couples_batch_rows());
}

TEST_CASE("has_trained_parameters() considers only the head if only the head is trained") {
  const auto net = net_of("cnn", {3, 8, 8}, 6);
  CHECK(has_trained_parameters(*net, false));
  CHECK_FALSE(has_trained_parameters(*with_frozen(net, {"*"}).value(), false));
  CHECK_FALSE(has_trained_parameters(*with_frozen(net, {"fc2"}).value(), true));
  CHECK(has_trained_parameters(*with_frozen(net, {"fc2"}).value(), false));
}

#include "runtime/training/bit_reproducibility.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/wrapped_model.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Emulates a machine with unequal bits: changes the logits if `is_wrong` returns true.
class spoilt_model final : public wrapped_model {
public:
  using condition = std::function<bool(const at::Tensor& weights)>;
  spoilt_model(model_ref inner, condition is_wrong) : wrapped_model(std::move(inner)), is_wrong_(std::move(is_wrong)) {}
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained,
                const gradient_sink& out) const override {
    const bool wrong = is_wrong_(weights);
    wrapped_model::backward(weights, kept, classes, wrong ? d_logits * 1.000001 : d_logits, d_features, trained, out);
  }

private:
  condition is_wrong_;
};

std::vector<model_ref> spoilt(spoilt_model::condition is_wrong) {
  return {std::make_shared<spoilt_model>(net_of("mlp", {3, 8, 8}, 4), std::move(is_wrong))};
}

/// Names of the checks that fail.
std::vector<std::string> broken(const std::vector<reproducibility_check>& findings) {
  std::vector<std::string> names;
  for (const auto& finding : findings)
    if (!finding.holds)
      names.push_back(finding.name);
  return names;
}

} // namespace

TEST_CASE("this machine gives clients equal bits", "[equal_bits]") {
  const auto findings = check_reproducibility(small_nets());
  REQUIRE(findings.size() == 3);
  for (const auto& finding : findings) {
    INFO(finding.name << ": " << finding.details);
    CHECK(finding.holds);
  }
  CHECK(findings[0].details == "3 nets, 16 offsets in a cache line");
}

TEST_CASE("bits that depend on the alignment of operands are detected", "[equal_bits]") {
  const auto nets = spoilt([](const at::Tensor& weights) {
    return weights.size(0) == 1 && reinterpret_cast<std::uintptr_t>(weights.const_data_ptr()) % 64 == 20;
  });
  const auto findings = check_reproducibility(nets);
  CHECK(broken(findings) == std::vector<std::string>{"operands at any address"});
  CHECK_THAT(findings[0].details, ContainsSubstring("other bits at an offset of 5 floats in a cache line"));
}

TEST_CASE("bits that depend on the batch are detected", "[equal_bits]") {
  const auto findings = check_reproducibility(spoilt([](const at::Tensor& weights) { return weights.size(0) > 1; }));
  CHECK_FALSE(findings[1].holds);
  CHECK_THAT(findings[1].details, ContainsSubstring("a fused client has other bits"));
}

TEST_CASE("bits that depend on the thread are detected", "[equal_bits]") {
  const auto first = std::this_thread::get_id();
  const auto findings =
      check_reproducibility(spoilt([=](const at::Tensor&) { return std::this_thread::get_id() != first; }));
  CHECK(broken(findings) == std::vector<std::string>{"one thread and several"});
  CHECK_THAT(findings[2].details, ContainsSubstring("other bits on another thread"));
}

TEST_CASE("a run on a machine with unequal bits gives a warning", "[equal_bits]") {
  CHECK(warning_of({{.name = "a", .details = "b"}}).empty());
  CHECK(warning_of({{.name = "a", .details = "b"}, {.name = "c", .details = "d", .holds = false}}) ==
        "this machine does not give equal bits (c: d): digests may differ from run to run; run `mneme doctor` for "
        "details");
}

#include "runtime/method/context.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::Message;

namespace {

/// Program that only declares its outputs and never runs.
class declared_only final : public program {
public:
  explicit declared_only(std::vector<declared_tensor> promised, std::string word = "noise", std::string options = "")
      : promised_(std::move(promised)), name_(std::move(word)), identity_(std::move(options)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override { return promised_; }
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call>) const override { return {}; }

private:
  std::vector<declared_tensor> promised_;
  std::string name_, identity_;
};

program_ref declaring(std::vector<declared_tensor> promised) {
  return std::make_shared<const declared_only>(std::move(promised));
}

program_job usual() {
  static const auto source = drawn_data(10, {1, 1, 8}, 4);
  auto in = std::make_shared<tensor_map>();
  in->put("codes", at::zeros({3, 2}));
  return {.body = declaring(
              {{.name = "images", .shape = {3, 1, 4, 4}, .type = at::kByte}, {.name = "losses", .shape = {3}}}),
          .in = in,
          .samples = rows_from(source, 0, 5),
          .rows = 20};
}

void replace(program_job& job, const std::string& name, at::Tensor value) {
  auto changed = std::make_shared<tensor_map>();
  changed->put(name, std::move(value));
  job.in = changed;
}

} // namespace

TEST_CASE("rows and bytes of a program's job are those that it declares", "[program]") {
  CHECK(rows_of(usual()) == 20);
  CHECK(outcome_bytes(usual()) == 3 * 16 + 3 * 4);
  CHECK(std::string(work_name(usual())) == "program");
}

TEST_CASE("calls share a batch if program, shapes and kind of data agree, for any values and rows", "[program]") {
  auto alike = usual();
  alike.body = usual().body;
  replace(alike, "codes", at::ones({3, 2}));
  alike.samples = rows_from(alike.samples.source, 3, 7);
  alike.stream = {.seed = 9};
  alike.rows = 1;
  CHECK(key_of(alike) == key_of(usual()));

  std::set<fuse_key> keys{key_of(usual())};
  const auto differs = [&](auto change) {
    auto job = usual();
    change(job);
    CHECK(keys.insert(key_of(job)).second);
  };
  differs(
      [](program_job& job) { job.body = std::make_shared<declared_only>(std::vector<declared_tensor>{}, "paint"); });
  differs([](program_job& job) {
    job.body = std::make_shared<declared_only>(std::vector<declared_tensor>{}, "noise", "2 steps");
  });
  differs([](program_job& job) { replace(job, "codes", at::zeros({2, 3})); });
  differs([](program_job& job) { replace(job, "codes", at::zeros({3, 2}, at::kDouble)); });
  differs([](program_job& job) { replace(job, "seeds", at::zeros({3, 2})); });
  differs([](program_job& job) { job.in = nullptr; });
  differs([](program_job& job) { job.samples = {}; });
}

TEST_CASE("a program that does not declare its outputs is not run", "[program]") {
  job_channel channel;
  context ctx(channel);
  const auto refused = [&](program_ref body, const std::string& reason) {
    CHECK_THROWS_MATCHES(ctx.run({.body = std::move(body)}), std::invalid_argument, Message(reason));
  };
  refused(nullptr, "a job without a program: program_job::body is null");
  refused(declaring({}), "program 'noise' declares no outcome");
  refused(declaring({{.name = "x", .shape = {1}}, {.name = "x", .shape = {2}}}),
          "program 'noise': its outcome() declares 'x' twice");
  refused(declaring({{.name = "x", .shape = {2, -1}}}), "program 'noise': its outcome() declares 'x' with an extent of "
                                                        "-1: expected sizes that are fixed before the job runs");
}

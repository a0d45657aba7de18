// Modules in a run: as its net, and as a file that a method's key names.
#include "strategies/shared/averaging.hpp"
#include "tests/support/module_files.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::atomic<int> rows_of_twos{0};

/// Averaging whose clients first compute features of their rows by the module of a key.
class looking_through final : public averaging_method {
public:
  void keys(key_table& table) override { table.path("body", body_, "for tests"); }
  method_needs needs() const override {
    method_needs needed;
    if (!body_.empty())
      needed.module_files = {{"body", {.file = body_}}};
    return needed;
  }
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    module_ = setup.modules.at("body");
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    extract_job wanted{.net = module_.net, .weights = module_.weights, .samples = ctx.samples(), .logits = false};
    auto looking = ctx.extract(std::move(wanted));
    auto seen = co_await looking;
    rows_of_twos += static_cast<int>((seen.features == 2).all(1).sum().item<std::int64_t>());
    auto inner = averaging_method::client_round(ctx, in);
    auto result = co_await inner;
    co_return result;
  }

private:
  std::filesystem::path body_;
  loaded_module module_;
};
const strategy_registration looking_line{
    {.name = "looking-through", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<looking_through>();
     }}};

std::string scenario_with(const std::string& method, const std::string& model) {
  return R"(
clients.count = 4
rounds = { per_task = 2, cohort = 4 }
tasks.kind = "single"
partition.kind = "iid"
data = { name = "synthetic", shape = [1, 6, 6], rows = 40 }
)" + model +
         method;
}

} // namespace

TEST_CASE("a method receives the module of its key as a net with the file's weights") {
  const scratch_folder folder;
  made_program made;
  const auto flat = flattened(made, tensor_named("x"));
  const auto none = made.call("mul.Tensor", {{"self", flat}, {"other", number(0)}});
  made.call("add.Tensor", {{"self", none}, {"other", made.parameter("two", at::full({36}, 2.0F))}});
  write_module(folder.path() / "twos.pt2", made);
  rows_of_twos = 0;
  const auto method =
      "strategy = { name = \"looking-through\", body = \"" + (folder.path() / "twos.pt2").string() + "\" }\n";
  const auto run = run_toml(scenario_with(method, "model.name = \"linear\"\n"));
  CHECK(run.summary.client_rounds == 8);
  CHECK(rows_of_twos == 80); // all rows, in both rounds
}

TEST_CASE("an error in a method's module file is located at its key") {
  const scratch_folder folder;
  made_program made;
  made.call("relu.default", {{"self", tensor_named("x")}});
  made.changes = json::array({{{"op", "add"},
                               {"path", "/graph_module/signature/output_specs/-"},
                               {"value", {{"user_output", {{"arg", tensor_named("x")}}}}}}});
  write_module(folder.path() / "pair.pt2", made);
  const auto file = (folder.path() / "pair.pt2").string();
  const auto text = refusal_of(
      scenario_with("[strategy]\nname = \"looking-through\"\nbody = \"" + file + "\"\n", "model.name = \"linear\"\n"));
  CHECK_THAT(text,
             ContainsSubstring("test.toml:10:8: " + file + ": error: forward returns 2 tensors (v0, x); expected one"));
}

TEST_CASE("a module net learns, and its file is part of the scenario digest") {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt2", small_convolution());
  const auto model = "model.module = \"" + (folder.path() / "net.pt2").string() + "\"\n";
  const auto toml = scenario_with("strategy.name = \"fedavg\"\n", model);
  const auto first = run_toml(toml, {.threads = 1});
  CHECK(first.summary.run_digest == run_toml(toml, {.threads = 3}).summary.run_digest);
  const auto still = run_toml(toml, {.over = {{"training.epochs", "0"}}});
  CHECK(first.model != still.model);
  write_module(folder.path() / "net.pt2", small_convolution(0.2F));
  const auto second = run_toml(toml);
  CHECK(first.summary.scenario_digest != second.summary.scenario_digest);
  CHECK(first.summary.run_digest != second.summary.run_digest);
}

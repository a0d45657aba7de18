#include "tests/runtime/scenario/probe.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
namespace mneme {
namespace {

enum class probe_rule { mean, median };

class probe_method final : public strategy {
public:
  void keys(key_table& table) override {
    table.number("mu", mu_, {.low = 0.0}, "A number.");
    table.choice("rule", rule_, {{"mean", probe_rule::mean}, {"median", probe_rule::median}}, "A word.");
    table.integers("layers", layers_, {.low = 1}, "A list of integers.");
    table.duration("pause", pause_, "A duration.");
    table.size("buffer", buffer_, "A size.");
    table.path("extra", extra_, "A path.");
  }
  [[nodiscard]] std::vector<preset> presets() const override {
    return {{"small", "Few clients.",
             "[clients]\ncount = 8\n[strategy]\nmu = 0.5\n[training]\nepochs = 3\n[partition]\nbeta = 0.1\n"},
            {"broken", "Cannot be.", "[clients]\ncount = 4\n[rounds]\ncohort = 5\ncohrt = 1\n"}};
  }
  [[nodiscard]] upload_content uploads() const override { return upload_content::weights; }
  void prepare(const method_setup&) override {}
  task<client_result> client_round(client_context&, const broadcast&) const override { co_return client_result{}; }
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override { return nullptr; }

private:
  double mu_ = 0.01;
  probe_rule rule_ = probe_rule::mean;
  std::vector<std::int64_t> layers_{1, 2};
  virtual_duration pause_{0};
  byte_size buffer_{1024};
  std::filesystem::path extra_{};
};

class probe_barrier final : public strategy {
public:
  [[nodiscard]] method_needs needs() const override { return {.round_barrier = true}; }
  void prepare(const method_setup&) override {}
  task<client_result> client_round(client_context&, const broadcast&) const override { co_return client_result{}; }
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override { return nullptr; }
};

class probe_net : public model_kind {
public:
  void keys(key_table& table) override {
    table.integers("hidden", hidden_, {.low = 1}, "Widths.");
    table.flag("probed", probed_, "A flag.");
  }
  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3>, std::int64_t) const override {
    return tl::unexpected<std::string>("a probe cannot be built");
  }

private:
  std::vector<std::int64_t> hidden_{200, 100};
  bool probed_ = false;
};

class probe_stem final : public model_kind {
public:
  void keys(key_table& table) override { table.text("stem", stem_, "A text."); }
  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3>, std::int64_t) const override {
    return tl::unexpected<std::string>("a probe cannot be built");
  }

private:
  std::string stem_ = "cifar";
};

const strategy_registration method_line{
    {.name = "probe-method", .summary = "For tests.", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<probe_method>();
     }}};
const strategy_registration barrier_line{
    {.name = "probe-barrier", .summary = "For tests.", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<probe_barrier>();
     }}};
const model_registration net_line{
    {.name = "probe-net", .summary = "For tests.", .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<probe_net>();
     }}};
const model_registration stem_line{
    {.name = "probe-stem", .summary = "For tests.", .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<probe_stem>();
     }}};

} // namespace
} // namespace mneme

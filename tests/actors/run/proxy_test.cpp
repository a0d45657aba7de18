// The proxy of a method in a run: messages to and from it, their timing and their cost.
#include "strategies/shared/averaging.hpp"
#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include <ATen/ops/full.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

tensors_ref number(const char* name, double value) {
  auto made = std::make_shared<tensor_map>();
  made->put(name, at::full({1}, value, at::kDouble));
  return made;
}

tensor_map doubled(const tensor_map& in) {
  tensor_map out;
  out.put("twice", in.at("sum").mul(2.0));
  return out;
}

tensor_map refused(const tensor_map&) { throw std::runtime_error("cannot double"); }

/// Proxy that sums the numbers that it receives. A job doubles the sum, which is then sent as advice.
class adding_proxy final : public proxy_half {
public:
  explicit adding_proxy(std::string fault) : fault_(std::move(fault)) {}
  void receive(const delivery& in) override {
    if (fault_ == "deaf")
      throw std::runtime_error("cannot hear");
    sum_ += in.upload->at("number").item<double>();
    ++received_;
  }
  task<tensors_ref> advise(server_context& ctx, const round_info& info, const tensors_ref& model) override {
    CHECK(model->at(flat_weights).numel() > 0);
    auto* const answer = fault_ == "job" && info.round.value == 1 ? refused : doubled;
    auto doubling = ctx.compute({.name = "doubling", .run = answer, .in = number("sum", sum_)});
    auto made = co_await doubling;
    co_return made.out;
  }
  std::map<std::string, double> summary_metrics() const override {
    return {{"received", static_cast<double>(received_)}};
  }
  void persist(archive& state) override { state(sum_)(received_); }

private:
  std::string fault_;
  double sum_ = 0.0;
  std::int64_t received_ = 0;
};

/// FedAvg whose client c sends c + 1 to the proxy and counts the advice that it receives.
class whispering final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.text("fault", fault_, "deaf: the proxy cannot receive; job: its job of round 2 fails.");
  }
  [[nodiscard]] method_needs needs() const override { return {.round_barrier = true, .has_proxy = true}; }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    auto inner = averaging_method::client_round(ctx, in);
    auto result = co_await inner;
    result.to_proxy = number("number", ctx.self().value + 1.0);
    if (in.advice)
      result.counts["heard"] = in.advice->at("twice").item<double>();
    co_return result;
  }
  [[nodiscard]] std::unique_ptr<proxy_half> make_proxy() const override {
    return std::make_unique<adding_proxy>(fault_);
  }

private:
  std::string fault_;
};

const strategy_registration line{
    {.name = "whispering", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<whispering>();
     }}};

// Four clients, all of them in each of three rounds.
const auto whispers = made_scenario({{"data.shape", raw_toml("[6]")},
                                     {"data.classes", 2},
                                     {"data.rows", 40},
                                     {"tasks.kind", "single"},
                                     {"tasks.count", 1},
                                     {"partition.kind", "iid"},
                                     {"clients.count", 4},
                                     {"rounds.per_task", 3},
                                     {"rounds.cohort", 4},
                                     {"model.name", "linear"},
                                     {"strategy.name", "whispering"}});

double figure_of(const run_summary& summary, const char* name) { return summary.figures.at(name); }

} // namespace

TEST_CASE("a proxy receives all clients' messages, and its advice is sent with later broadcasts") {
  const auto run = run_toml(whispers, {.trace = true});
  REQUIRE(run.summary.status == "done");
  CHECK(figure_of(run.summary, "received") == 12);
  // The sum is 1 + 2 + 3 + 4 per round. The first round has no advice; four clients receive 2 * 10 in the second and 2
  // * 20 in the third.
  CHECK(figure_of(run.summary, "heard") == 4 * 20 + 4 * 40);
  const auto model_bytes = static_cast<double>(run.summary.upload_bytes) / 12;
  CHECK(figure_of(run.summary, "proxy_bytes") == 12 * 8 + 2 * 4 * 8 + 3 * model_bytes);
  const auto events_named = [&](const std::string& word) {
    std::size_t count = 0;
    for (auto at = run.events.find(word); at != std::string::npos; at = run.events.find(word, at + 1))
      ++count;
    return count;
  };
  CHECK(events_named(",proxy,receive,") == 12);
  CHECK(events_named(",proxy,advise,") == 3);
}

TEST_CASE("a message to the proxy takes the time of its own link") {
  const auto seconds = [](const char* uplink, const char* downlink) {
    const overrides links{{"devices.proxy_uplink_mbit", uplink}, {"devices.proxy_downlink_mbit", downlink}};
    return run_toml(whispers, {.over = links}).summary.virtual_seconds;
  };
  const auto fast = seconds("1000.0", "1000.0");
  // 64 bits per round at one bit per second: an upload is delivered when both parts have arrived.
  CHECK(seconds("1e-6", "1000.0") - fast > 3 * 63.0);
  CHECK(seconds("1e-6", "1000.0") - fast < 3 * 65.0);
  CHECK(seconds("1000.0", "1e-6") - fast > 2 * 63.0); // the first round has no message
  CHECK(seconds("1000.0", "1e-6") - fast < 2 * 65.0);
}

TEST_CASE("a run with a proxy has one digest for all threads, workers, widths and shards") {
  const auto expected = run_toml(whispers, {.threads = 1});
  for (const std::int64_t threads : {2, 3})
    CHECK(run_toml(whispers, {.threads = threads}).summary.run_digest == expected.summary.run_digest);
  for (const auto& over : std::vector<overrides>{{{"worker.fused_clients_max", "1"}}, {{"worker.shards", "3"}}}) {
    const auto run = run_toml(whispers, {.over = over});
    CHECK(run.summary.run_digest == expected.summary.run_digest);
    CHECK(run.summary.figures == expected.summary.figures);
  }
}

TEST_CASE("a run with a proxy resumes from any event with an equal digest") {
  const workshop shop(whispers.with({{"checkpoint.force", true}, {"devices.dropout", 0.2}}));
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(whole.status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 4}, workers::others) > 5);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
}

TEST_CASE("a failing proxy ends the run and is named with its job") {
  const auto deaf = run_toml(whispers, {.over = {{"strategy.fault", "deaf"}}});
  CHECK(deaf.summary.status == "failed");
  CHECK_THAT(deaf.summary.error,
             ContainsSubstring("proxy") && ContainsSubstring("receiving uploads") && ContainsSubstring("cannot hear"));
  const auto job = run_toml(whispers, {.over = {{"strategy.fault", "job"}}});
  CHECK(job.summary.status == "failed");
  CHECK_THAT(job.summary.error,
             ContainsSubstring("proxy, proxy step, round 2, job 0.0: ") && ContainsSubstring("cannot double"));
}

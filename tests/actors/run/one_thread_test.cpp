// Every computing thread must limit LibTorch and MKL to one thread, because a sum that is split over threads has
// different bits.
#include "runtime/base/intra_op_threads.hpp"
#include "strategies/shared/averaging.hpp"
#include "tests/support/run.hpp"
#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Place at which code of a method runs.
enum class place : std::size_t { client, job, server_handler, server_job };
struct answers {
  std::atomic<int> asked{0}, most_threads{0};
};
std::array<answers, 4> heard; // by place

void ask(place where) {
  auto& here = heard.at(static_cast<std::size_t>(where));
  ++here.asked;
  const int threads = intra_op_threads();
  int most = here.most_threads;
  while (threads > most && !here.most_threads.compare_exchange_weak(most, threads)) {
  }
}

tensor_map ask_in_job(const tensor_map& /*in*/) {
  ask(place::job);
  return {};
}

tensor_map ask_in_server_job(const tensor_map& /*in*/) {
  ask(place::server_job);
  return {};
}

/// Averaging that records, wherever its code runs, how many threads an operation would use.
class asking_server final : public server_half {
public:
  explicit asking_server(std::unique_ptr<server_half> inner) : inner_(std::move(inner)) {}
  task<task_plan> open_task(server_context& ctx, const round_info& at_place) override {
    ask(place::server_handler);
    return inner_->open_task(ctx, at_place);
  }
  broadcast open_round(const round_info& at_place) override {
    ask(place::server_handler);
    return inner_->open_round(at_place);
  }
  void fold(const delivery& in) override {
    ask(place::server_handler);
    inner_->fold(in);
  }
  task<void> close_round(server_context& ctx, const round_info& at_place) override {
    ask(place::server_handler);
    auto asking = ctx.compute({.name = "ask", .run = &ask_in_server_job, .in = std::make_shared<const tensor_map>()});
    auto answer = co_await asking;
    auto closing = inner_->close_round(ctx, at_place);
    co_await closing;
  }
  predictor predict() const override { return inner_->predict(); }
  void persist(archive& state) override { inner_->persist(state); }

private:
  std::unique_ptr<server_half> inner_;
};

class asking final : public averaging_method {
public:
  method_needs needs() const override { return {}; }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    ask(place::client);
    auto asked = ctx.compute({.name = "ask", .run = &ask_in_job, .in = std::make_shared<const tensor_map>()});
    auto answer = co_await asked;
    auto inner = averaging_method::client_round(ctx, in);
    auto result = co_await inner;
    co_return result;
  }
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<asking_server>(averaging_method::make_server());
  }
};
const strategy_registration asking_line{
    {.name = "asking", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<asking>();
     }}};

const std::string many_jobs = R"(
[data]
name = "synthetic"
shape = [64]
rows = 4000
[tasks]
kind = "single"
[partition]
kind = "iid"
[clients]
count = 40
[rounds]
per_task = 3
[model]
name = "mlp"
hidden = [64]
[strategy]
name = "asking"
)";

} // namespace

TEST_CASE("all code of clients and of the server runs with one LibTorch thread") {
  for (const std::int64_t threads : {1, 2, 4}) {
    for (auto& here : heard)
      here.asked = here.most_threads = 0;
    CHECK(run_toml(many_jobs, {.threads = threads}).summary.status == "done");
    for (const auto& here : heard) {
      INFO(threads << " threads, place " << &here - heard.data());
      CHECK(here.asked > 0);
      CHECK(here.most_threads == 1);
    }
  }
}

/// run_fixture: a run context without files, whose clients train an MLP once per round and upload its weights.
#pragma once
#include "actors/compute/shard.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/data/partition.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/small_data.hpp"
#include <functional>
namespace mneme::test {

/// Client half: one training on the client's rows, then an upload of the weights. The method has no server.
class train_once final : public strategy {
public:
  void prepare(const method_setup& /*setup*/) override {}
  [[nodiscard]] method_needs needs() const override { return {.upload_size_known = true}; }
  void use(model_ref net) { net_ = std::move(net); }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    const training_options options{.epochs = 1, .batch_rows = 5, .learning_rate = 0.1, .classes = {0, 2}};
    auto training = ctx.train({.net = net_,
                               .start = in.weights,
                               .samples = ctx.samples(),
                               .objective = cross_entropy_objective(),
                               .auxiliary = nullptr,
                               .options = options,
                               .stream = ctx.training_stream()});
    auto trained = co_await training;
    co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = trained.rows_seen};
  }
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override { return nullptr; }

private:
  model_ref net_;
};

/// Run with `clients` clients of ten rows each: four pixels, two classes, one hidden layer.
inline std::shared_ptr<run_context> hand_made_run(std::int64_t clients, std::int64_t hidden = 3) {
  scenario from;
  from.tasks.kind = task_kind::single;
  from.tasks.count = 1;
  from.partition.kind = partition_kind::iid;
  from.clients.count = clients;
  from.rounds.cohort = clients;
  auto made = std::make_shared<run_context>();
  auto data = hand_made_data(2, 10 * clients, {1, 1, 4});
  made->tasks = std::make_shared<const task_stream>(make_task_stream(from, std::move(data)).value());
  made->population = std::make_shared<const population>(from);
  const auto split = make_partition(from, made->tasks).value();
  made->net = mlp_of({hidden}, 4, 2);
  auto method = std::make_shared<train_once>();
  method->use(made->net);
  made->method = method;
  made->needs = method->needs();
  made->rows = std::make_shared<const client_rows>(made->tasks, split, made->population, row_visibility::current);
  made->device = "cpu";
  made->scenario = std::move(from);
  return made;
}

/// Shard whose clients run in a plain loop, without actors.
class shard_of_loop final : public client_host {
public:
  explicit shard_of_loop(const run_context& run) : tested({0}, run, *this), run_(run) {}
  [[nodiscard]] std::unique_ptr<client_handle> start(assignment assigned) override {
    const auto id = assigned.id;
    auto round = std::make_shared<client_round_runner>(*run_.method, std::move(assigned));
    turns_.push_back([this, id, round] { tested.on_round_progress(id, round->start()); });
    return std::make_unique<hosted>(*this, id, std::move(round));
  }
  void run_turns() override {
    for (const auto& turn : std::exchange(turns_, {}))
      turn();
  }

  shard tested;

private:
  class hosted final : public client_handle {
  public:
    hosted(shard_of_loop& host, assignment_id id, std::shared_ptr<client_round_runner> round)
        : host_(host), id_(id), round_(std::move(round)) {}
    void resume(outcomes results) override {
      auto shared = std::make_shared<outcomes>(std::move(results)); // a std::function must be copyable
      host_.turns_.push_back([&host = host_, id = id_, round = round_, shared] {
        host.tested.on_round_progress(id, round->resume(std::move(*shared)));
      });
    }
    void abandon() override { round_.reset(); }

  private:
    shard_of_loop& host_;
    assignment_id id_;
    std::shared_ptr<client_round_runner> round_;
  };

  const run_context& run_;
  std::vector<std::function<void()>> turns_;
};

} // namespace mneme::test

/// A run made by hand: clients that train an mlp once a round and upload its weights. Nothing is read from files.
#pragma once
#include "actors/protocol/world.hpp"
#include "runtime/data/partition.hpp"
#include "tests/support/hand_made.hpp"
#include "tests/support/learning.hpp"
namespace mneme::test {

/// One training on the client's rows, then its weights. It has no server.
class train_once final : public strategy {
public:
  void prepare(const method_setup& /*setup*/) override {}
  [[nodiscard]] method_needs needs() const override { return {.upload_size_known = true}; }
  void use(model_ref net) { net_ = std::move(net); }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    const training_options options{.epochs = 1, .batch_rows = 5, .learning_rate = 0.1, .classes = {0, 2}};
    auto training = ctx.train({.net = net_, .start = in.weights, .samples = ctx.samples(), .objective = cross_entropy(),
                               .side = nullptr, .options = options, .stream = ctx.training_stream()});
    auto trained = co_await training;
    co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = trained.rows_seen};
  }
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override { return nullptr; }

private:
  model_ref net_;
};

/// `clients` of ten rows each, four pixels, two classes, one hidden layer.
inline std::shared_ptr<world> hand_made_run(std::int64_t clients, std::int64_t hidden = 3) {
  scenario from;
  from.tasks.kind = task_kind::single;
  from.tasks.count = 1;
  from.partition.kind = partition_kind::iid;
  from.clients.count = clients;
  from.rounds.cohort = clients;
  auto made = std::make_shared<world>();
  auto data = hand_made_data(2, 10 * clients, {1, 1, 4});
  made->tasks = std::make_shared<const curriculum>(make_curriculum(from, std::move(data)).value());
  made->people = std::make_shared<const population>(from);
  const auto split = make_partition(from, made->tasks).value();
  made->net = mlp_of({hidden}, 4, 2);
  auto method = std::make_shared<train_once>();
  method->use(made->net);
  made->method = method;
  made->needs = method->needs();
  made->rows = std::make_shared<const client_rows>(made->tasks, split, made->people, rows_shown::current);
  made->device = "cpu";
  made->what = std::move(from);
  return made;
}

} // namespace mneme::test

/// fil_ver_federation: FIL-VER without actors, with two clients, three tasks, and an accessible server.
#pragma once
#include "runtime/models/embedding_model.hpp"
#include "tests/support/shown_steps.hpp"
namespace mneme::test::fil_ver_case {

inline constexpr std::int64_t pixels = 10, classes = 2, rows_each = 40, tasks = 3, width = 4;

/// Every `nth` row of a task; the clients enrolled at first hold the even ones.
inline std::vector<std::int64_t> rows_of_task(std::uint32_t task, std::int64_t nth) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < rows_each; row += nth)
    rows.push_back(row + static_cast<std::int64_t>(task) * rows_each);
  return rows;
}

/// A federation of two clients. Client c holds every second row of a task, starting with row c.
struct federation {
  std::shared_ptr<const dataset> rows = striped_rows(rows_each * tasks, pixels, classes);
  std::unique_ptr<strategy> method = strategy_named("fil-ver");
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const embedding_model> net;
  tensors_ref initial;
  std::unique_ptr<server_half> server;
  std::vector<memory_ref> memory{2};
  std::vector<std::uint32_t> visits{0, 0};
  std::uint32_t round = 0;
  std::vector<std::string> warnings{};
  std::vector<train_job> server_trainings{}; // what the server has trained, in order

  explicit federation(key_list keys, double low = -6.0, std::int64_t embedding = width) {
    keys.pairs.insert(keys.pairs.begin(), {{"vee_epochs", "2"}, {"server_steps", "5"}, {"server_batch", "8"}});
    give_keys(*method, keys.pairs);
    const bool normal = method->needs().defaults.find("vee") != std::string::npos;
    net = std::make_shared<const embedding_model>(
        embedding_shape{.hidden = {8}, .embedding = embedding, .classifier = {6}, .normal = normal, .low = low},
        std::array<std::int64_t, 3>{1, 1, pixels}, classes);
    initial = weights_only(initial_weights(*net, 5));
    method->prepare(setup());
    server = method->make_server();
  }
  method_setup setup() const {
    auto made = setup_of_run(net, pixels, tasks);
    made.initial = initial;
    made.training.batch = 8;
    made.clients = 2;
    made.task_classes.assign(tasks, {0, classes});
    return made;
  }

  round_info info(std::uint32_t task) const {
    return {.round = {round},
            .task = {task},
            .rounds_of_task = 2,
            .seen_classes = {0, classes},
            .current_classes = {0, classes}};
  }
  void open(std::uint32_t task) {
    job_channel channel;
    const listed_rows central(
        rows, [](std::uint32_t t) { return rows_of_task(t, 1); }, [](std::uint32_t t) { return rows_of_task(t, 2); });
    server_context ctx(channel, &central);
    run_shown_step(server->open_task(ctx, info(task)), channel, *device, [this](const plan& wanted) { note(wanted); });
    warnings = ctx.take_warnings();
  }
  broadcast sent(std::uint32_t task) {
    auto in = server->open_round(info(task));
    in.info = info(task);
    return in;
  }
  client_result answer(std::uint32_t c, std::uint32_t task) {
    std::vector<std::int64_t> mine;
    for (std::int64_t row = c; row < rows_each; row += 2)
      mine.push_back(row + task * rows_each);
    return run_round(*method, *device,
                     {.id = {round * 2 + c},
                      .client = {c},
                      .in = std::make_shared<const broadcast>(sent(task)),
                      .memory = memory[c],
                      .samples = view_of(rows, mine),
                      .seed = 5,
                      .visit = visits[c]++});
  }
  /// Runs one round of these clients. Returns the uploads in order.
  std::vector<client_result> run(std::uint32_t task, const std::vector<std::uint32_t>& who) {
    std::vector<client_result> results;
    for (const auto c : who) {
      results.push_back(answer(c, task));
      memory[c] = results.back().memory;
      server->fold({.assignment = {},
                    .from = {c},
                    .started_from = {round},
                    .upload = results.back().upload,
                    .rows = results.back().rows});
    }
    close(task);
    ++round;
    return results;
  }
  /// Runs the server's step and records its training jobs.
  void close(std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel);
    run_shown_step(server->close_round(ctx, info(task)), channel, *device,
                   [this](const plan& wanted) { note(wanted); });
  }
  void note(const plan& wanted) {
    if (const auto* const training = std::get_if<train_job>(&wanted.at(0)))
      server_trainings.push_back(*training);
  }
  at::Tensor model() const { return server->predict().weights->at(flat_weights); }
  at::Tensor encoder() const { return model().narrow(0, 0, net->encoder()->size()); }
};

} // namespace mneme::test::fil_ver_case

/// split_client: a method on a frozen backbone without actors: one client, three tasks, and a server.
#pragma once
#include "tests/support/shown_steps.hpp"
namespace mneme::test::split_case {

inline constexpr std::int64_t pixels = 6, classes = 6, rows_of_task = 40;

/// Three tasks of two classes with one client, on a random backbone of 100 features.
struct split_client {
  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const dataset> rows = striped_rows(120, pixels, classes);
  method_setup setup = setup_of_run(model_named("mlp", {1, 1, pixels}, classes), pixels, 3);
  std::unique_ptr<server_half> server;
  memory_ref memory;
  std::uint32_t visits = 0;

  explicit split_client(const std::string& name, key_list keys = {}) : method(strategy_named(name)) {
    keys.pairs.insert(keys.pairs.begin(), {{"adjustment_width", "8"}, {"head_width", "7"}});
    give_keys(*method, keys.pairs);
    setup.training = {.epochs = 2, .batch = 16, .learning_rate = 0.02, .momentum = 0.9, .clip_norm = 5.0};
    setup.task_classes = {{0, 2}, {2, 4}, {4, 6}};
    method->prepare(setup);
    server = method->make_server();
  }
  [[nodiscard]] static round_info place_in(std::uint32_t task, std::int64_t round = 0) {
    auto info = class_task(task, 2);
    info.round_of_task = round;
    return info;
  }
  void open(std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel);
    run_step(server->open_task(ctx, place_in(task)), channel, *device);
  }
  [[nodiscard]] broadcast sent(std::uint32_t task) const {
    auto in = server->open_round(place_in(task));
    in.info = place_in(task);
    return in;
  }
  [[nodiscard]] assignment assigned(std::uint32_t task, const broadcast& in) {
    std::vector<std::int64_t> mine;
    for (std::int64_t r = 0; r < 120; ++r)
      if (r % classes / 2 == task)
        mine.push_back(r);
    return {.in = std::make_shared<const broadcast>(in),
            .memory = memory,
            .samples = view_of(rows, mine),
            .seed = 5,
            .visit = visits++,
            .task = {task}};
  }
  client_result answer(std::uint32_t task, const broadcast& in) {
    return run_round(*method, *device, assigned(task, in));
  }
  /// Jobs of a round; leaves the client unchanged.
  [[nodiscard]] plan jobs(std::uint32_t task, const broadcast& in) {
    return jobs_of_round(*method, *device, assigned(task, in));
  }
  client_result round(std::uint32_t task) {
    auto result = answer(task, sent(task));
    memory = result.memory;
    server->fold({.upload = result.upload, .rows = result.rows});
    job_channel channel;
    server_context ctx(channel);
    run_step(server->close_round(ctx, place_in(task)), channel, *device);
    return result;
  }
  [[nodiscard]] model_ref learned() const { return server->predict().classifier->net; }
};

} // namespace mneme::test::split_case

/// three_clients: federation whose virtual times can be computed by hand (table in federation_test.cpp), and its parts,
/// connected as in the federation.
#pragma once
#include "runtime/federation/client_work.hpp"
#include "runtime/federation/recovery.hpp"
#include "tests/runtime/federation/model_check/toy_federation.hpp"
namespace mneme::test {

class four_rows_each final : public partition {
public:
  [[nodiscard]] std::int64_t size(client_id, task_id) const override { return 4; }
  [[nodiscard]] std::vector<std::int64_t> rows(client_id, task_id) const override { return {0, 1, 2, 3}; }
};

inline scenario three_clients() {
  scenario from;
  from.seed = 1;
  from.clients.count = 3;
  from.rounds.per_task = 1;
  from.rounds.cohort = 3;
  from.devices.rows_per_second = std::vector{4.0, 2.0, 1.0};
  from.devices.uplink_mbit = std::vector{0.000128, 0.0, 0.000064};
  from.devices.downlink_mbit = 0.000256;
  from.devices.latency = std::chrono::milliseconds(100);
  from.evaluation.every = 0;
  from.checkpoint.every = 0;
  return from;
}

inline toy_federation toy_of(const scenario& from) {
  const auto clients = std::make_shared<const population>(from);
  toy_federation toy{.broadcast_bytes = 16, .plans = {{}}};
  toy.rows_of_every_job = 4;
  toy.settings = {.seed = static_cast<std::uint64_t>(from.seed),
                  .clients = clients,
                  .rows = std::make_shared<const client_rows>(nullptr, std::make_shared<const four_rows_each>(),
                                                              clients, row_visibility::current),
                  .rounds = from.rounds,
                  .evaluation = from.evaluation,
                  .tasks = {{{0, 2}, {0, 2}}},
                  .classes = 2,
                  .upload_size_known = true,
                  .ahead_bytes_max = 1 << 30,
                  .results_bytes_max = 1 << 30,
                  .checkpoint = from.checkpoint,
                  .trace = true};
  return toy;
}

struct federation_parts {
  explicit federation_parts(federation_settings with) : settings(std::move(with)) {
    round.open_task({0}, settings);
    open_round_of(16);
  }
  /// Reports that the server has created a broadcast of this size.
  void open_round_of(std::int64_t bytes) {
    const auto in = std::make_shared<const broadcast>(broadcast{.info = round.info, .weights = as_tensors(1, bytes)});
    round.open({.in = in, .bytes = bytes});
  }
  /// Commands since the last call.
  std::vector<federation_command> commands() {
    std::vector<federation_command> taken;
    out.take_commands(taken);
    return taken;
  }

  const federation_settings settings;
  current_round round;
  in_flight_table in_flight;
  run_clock clock{settings};
  run_output out{settings, clock, round.info};
  wave_scheduler ahead{settings, clock, round, in_flight, out};
  server_links links{settings, clock};
  dispatcher dispatch{settings, clock, round, in_flight, links, ahead, out};
  client_work work{settings, clock, round, ahead, dispatch, in_flight, links, out};
  recovery recover{settings, clock, round, in_flight, links, ahead, dispatch, out};
};

} // namespace mneme::test

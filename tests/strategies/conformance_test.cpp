// Properties that every method must have.
#include "runtime/method/transfer_encoding.hpp"
#include "tests/support/method_federation.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

void check_equal(const tensors_ref& a, const tensors_ref& b) {
  REQUIRE((a == nullptr) == (b == nullptr));
  if (!a)
    return;
  REQUIRE(a->size() == b->size());
  for (const auto& [name, value] : *a)
    CHECK(at::equal(value, b->at(name)));
}

/// Opens the first task and round.
broadcast opened(method_federation& in, server_half& server) {
  job_channel channel;
  server_context ctx(channel, &in.central, &in.made);
  const auto plan = run_step(server.open_task(ctx, in.info), channel, *in.device);
  in.info.rounds_of_task = plan.rounds.value_or(3);
  auto made = server.open_round(in.info);
  made.info = in.info;
  return made;
}

} // namespace

TEST_CASE("a client's round is a pure function of its assignment") {
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    method_federation federated(entry.name);
    const auto server = federated.method->make_server();
    const auto in = opened(federated, *server);
    const auto first = run_round(*federated.method, *federated.device, federated.work_for(1, in, nullptr));
    (void)run_round(*federated.method, *federated.device, federated.work_for(0, in, nullptr));
    const auto second = run_round(*federated.method, *federated.device, federated.work_for(1, in, nullptr));
    check_equal(first.upload, second.upload);
    check_equal(first.memory, second.memory);
    CHECK(first.rows == second.rows);
    CHECK(first.rows == 6);
  }
}

TEST_CASE("a round may be dropped at any stage") {
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    method_federation federated(entry.name);
    const auto server = federated.method->make_server();
    const auto in = opened(federated, *server);
    for (std::uint32_t stages = 0;; ++stages) {
      client_round_runner run(*federated.method, federated.work_for(0, in, nullptr));
      auto step = run.start();
      while (run.stage() < stages && std::holds_alternative<plan>(step))
        step = run.resume(run_plan(*federated.device, std::get<plan>(std::move(step))));
      if (!std::holds_alternative<plan>(step))
        break; // it has ended, so all stages were tried
    }
  }
}

TEST_CASE("a server learns from its uploads and keeps the shape of its broadcast") {
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    method_federation federated(entry.name);
    const auto server = federated.method->make_server();
    const auto in = opened(federated, *server);
    const auto before = server->predict().weights->at(flat_weights).clone();
    for (std::uint32_t c = 0; c < 3; ++c) {
      auto result = run_round(*federated.method, *federated.device, federated.work_for(c, in, nullptr));
      server->fold({.assignment = {c}, .from = {c}, .started_from = {}, .upload = result.upload, .rows = result.rows});
    }
    job_channel channel;
    server_context ctx(channel, &federated.central, &federated.made);
    run_step(server->close_round(ctx, federated.info), channel, *federated.device);
    const auto after = server->predict().weights->at(flat_weights);
    CHECK(after.sizes() == before.sizes());
    CHECK_FALSE(at::equal(after, before));
    CHECK(at::isfinite(after).all().item<bool>());
    const auto next = server->open_round(federated.info);
    CHECK(next.weights->bytes() == in.weights->bytes());
  }
}

TEST_CASE("uploads of a method can be sent with eight bits, each parameter with its own scale") {
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    method_federation federated(entry.name);
    const auto& layout = federated.method->wire_layout(*federated.net);
    const auto server = federated.method->make_server();
    const auto in = opened(federated, *server);
    const auto upload = run_round(*federated.method, *federated.device, federated.work_for(0, in, nullptr)).upload;
    for (const auto& sent : {in.weights, in.extra, in.initial_payload, upload}) {
      const auto arrived = convert_for_transfer(sent, wire_format::int8, layout);
      CHECK(wire_bytes(arrived.get(), wire_format::int8) == wire_bytes(sent.get(), wire_format::int8));
    }
  }
}

TEST_CASE("a server saved in the middle of a round continues equally in another process") {
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    method_federation federated(entry.name);
    const auto server = federated.method->make_server();
    const auto in = opened(federated, *server);
    std::vector<delivery> uploads;
    for (std::uint32_t c = 0; c < 3; ++c) {
      auto result = run_round(*federated.method, *federated.device, federated.work_for(c, in, nullptr));
      uploads.push_back({.assignment = {c}, .from = {c}, .upload = result.upload, .rows = result.rows});
    }
    server->fold(uploads[0]);
    server->fold(uploads[1]);
    archive saved;
    server->persist(saved);
    const auto elsewhere = federated.method->make_server();
    auto loaded = loading_from(saved);
    elsewhere->persist(loaded);
    loaded.expect_end();

    /// The rest of the round, and the broadcast of the next task.
    const auto go_on = [&](server_half& half) {
      job_channel channel;
      server_context ctx(channel, nullptr, &federated.made);
      half.fold(uploads[2]);
      run_step(half.close_round(ctx, federated.info), channel, *federated.device);
      const round_info next{.round = {1}, .task = {1}, .seen_classes = {0, 4}, .current_classes = {2, 4}};
      (void)run_step(half.open_task(ctx, next), channel, *federated.device);
      return half.open_round(next);
    };
    const auto here = go_on(*server), there = go_on(*elsewhere);
    check_equal(here.weights, there.weights);
    check_equal(here.extra, there.extra);
    check_equal(here.initial_payload, there.initial_payload);
    check_equal(server->predict().weights, elsewhere->predict().weights);
    CHECK(server->summary_metrics() == elsewhere->summary_metrics());
  }
}

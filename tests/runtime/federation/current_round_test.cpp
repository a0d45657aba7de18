#include "runtime/federation/current_round.hpp"
#include "tests/runtime/federation/model_check/toy_federation.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

federation_settings three_tasks() {
  scenario from;
  federation_settings settings;
  settings.clients = std::make_shared<const population>(from);
  settings.rows = std::make_shared<const client_rows>(nullptr, nullptr, settings.clients, row_visibility::current);
  settings.tasks = {{{0, 2}, {0, 2}}, {{2, 4}, {0, 4}}, {{4, 6}, {0, 6}}};
  return settings;
}

opened_round made_of(std::uint64_t model, const round_info& info) {
  return {.in = std::make_shared<const broadcast>(broadcast{.info = info, .weights = as_tensors(model, 24)}),
          .bytes = 24};
}

} // namespace

TEST_CASE("a new task sets its classes and its first round") {
  const auto settings = three_tasks();
  current_round round;
  round.info.round_of_task = 4;
  round.open_task({1}, settings);
  CHECK(round.info.task == task_id{1});
  CHECK(round.info.current_classes == class_range{2, 4});
  CHECK(round.info.seen_classes == class_range{0, 4});
  CHECK(round.info.round_of_task == 0);
}

TEST_CASE("clients in an older task receive the round's weights in a broadcast for that task, made once") {
  const auto settings = three_tasks();
  current_round round;
  round.open_task({2}, settings);
  round.open(made_of(5, round.info));
  CHECK(round.broadcast_in({2}, settings) == round.opened.in);
  const auto older = round.broadcast_in({1}, settings);
  CHECK(older->weights == round.opened.in->weights);
  CHECK(older->info.task == task_id{1});
  CHECK(older->info.current_classes == class_range{2, 4});
  CHECK(older->info.seen_classes == class_range{0, 6});
  CHECK(round.broadcast_in({1}, settings) == older);
  round.open(made_of(6, round.info));
  CHECK(as_number(round.broadcast_in({1}, settings)->weights) == 6);
}

TEST_CASE("with hidden tasks, clients only receive the round and the seen classes") {
  auto settings = three_tasks();
  settings.hide_task_from_clients = true;
  current_round round;
  round.open_task({2}, settings);
  round.info.round = {7};
  round.info.round_of_task = 3;
  round.info.rounds_of_task = 5;
  round.open(made_of(5, round.info));
  const auto told = round.broadcast_in({2}, settings);
  CHECK(told->weights == round.opened.in->weights);
  CHECK(told->info.round == round_id{7});
  CHECK(told->info.seen_classes == class_range{0, 6});
  CHECK(told->info.task == task_id{0});
  CHECK(told->info.current_classes == class_range{0, 6});
  CHECK(told->info.round_of_task == 0);
  CHECK(told->info.rounds_of_task == 1);
  CHECK(round.broadcast_in({1}, settings) == told);
}

TEST_CASE("the proxy's advice is part of the broadcast") {
  const auto settings = three_tasks();
  current_round round;
  round.last_advice[index_of(party_id::proxy)].advice = as_tensors(9);
  round.open(made_of(5, {}));
  CHECK(as_number(round.broadcast_in({0}, settings)->advice) == 9);
  CHECK(as_number(round.broadcast_in({0}, settings)->weights) == 5);
}

TEST_CASE("the size of an upload is that of the weights if the method declares it, else unknown") {
  auto settings = three_tasks();
  current_round round;
  round.open(made_of(5, {}));
  CHECK(round.known_upload_bytes(settings) == 0);
  settings.upload_size_known = true;
  CHECK(round.known_upload_bytes(settings) == 24);
}

TEST_CASE("an opened round has no deadline and no clients in flight") {
  current_round round;
  round.deadline = {};
  round.missing = round.folded = 3;
  round.open(made_of(5, {}));
  CHECK(round.is_open);
  CHECK(round.deadline == never);
  CHECK(round.missing == 0);
  CHECK(round.folded == 0);
}

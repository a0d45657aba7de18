// iCaRL: its loss, its exemplars and its nearest-mean classifier, by hand and compared with official code.
#include "strategies/baselines/class_means.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

using numbers = std::vector<std::int64_t>;

at::Tensor row(const std::vector<float>& values) { return at::tensor(values).unsqueeze(0); }
at::Tensor label(std::int64_t value) { return at::tensor({value}, at::kLong); }

/// A client's upload for these features: classes 0 and 1 in two dimensions.
std::shared_ptr<tensor_map> sums_of(const std::vector<float>& sums, const std::vector<float>& counts) {
  auto upload = std::make_shared<tensor_map>();
  upload->put(class_sums_name, at::tensor(sums).view({-1, 2}));
  upload->put(class_counts_name, at::tensor(counts));
  return upload;
}

} // namespace

TEST_CASE("the targets of old columns are the teacher's outputs for every row, whatever its label", "[icarl]") {
  const rehearsing_client client("icarl", {2, 1});
  const auto objective = client.training(1).objective;
  const auto step_of = [&](std::int64_t y) {
    return rehearsed_step{.logits = row({0.2F, -0.4F, 1.0F}), .labels = label(y), .teacher = row({0.5F, -1.0F})}
        .loss_of(*objective);
  };
  const auto fresh = step_of(2), old = step_of(0), other = step_of(1);
  CHECK_THAT(fresh.values.item<double>(), WithinAbs(0.535834, 1e-6));
  CHECK(largest_difference_of(fresh.d_logits, row({-0.024208F, 0.044124F, -0.089647F})) < 1e-6);
  CHECK_THAT(old.values.item<double>(), WithinAbs(0.869167, 1e-6));
  CHECK(largest_difference_of(old.d_logits, row({-0.024208F, 0.044124F, 0.243686F})) < 1e-6);
  CHECK(at::equal(old.d_logits, other.d_logits)); // the loss reads no label of an old row
  CHECK(at::equal(old.values, other.values));
}

TEST_CASE("iCaRL's losses equal inclearn's", "[icarl]") {
  const auto theirs = golden_record("icarl/inclearn");
  const rehearsing_client client("icarl", {3, 2});
  rehearsed_step step{.logits = formula_tensor("icarl.logits", {6, 5}, 3.0), .labels = labels_of(theirs["labels"])};
  step.padded = 2;
  const auto compare = [&](const loss& objective, const nlohmann::json& expected) {
    const auto ours = step.loss_of(objective);
    CHECK_THAT(ours.values.item<double>(), WithinAbs(expected["value"].get<double>(), 1e-6));
    CHECK(largest_difference_of(ours.d_logits[0].narrow(0, 0, 6), listed_tensor(expected["d_logits"], {6, 5})) < 1e-6);
    CHECK(ours.d_logits[0].narrow(0, 6, 2).abs().max().item<float>() == 0.0F); // padding
  };
  compare(*client.training(0).objective, theirs["losses"]["first_task"]);
  step.teacher = formula_tensor("icarl.teacher", {6, 3}, 2.0);
  compare(*client.training(1).objective, theirs["losses"]["later_task"]);
}

TEST_CASE("herding selects the rows of inclearn and PyCIL", "[icarl]") {
  const auto features = formula_tensor("icarl.features", {30, 8});
  CHECK(choose_exemplars(features, 12, exemplar_choice::repeats) ==
        golden_record("icarl/inclearn")["herding"].get<numbers>());
  CHECK(choose_exemplars(features, 12, exemplar_choice::greedy) ==
        golden_record("icarl/pycil")["herding"].get<numbers>());
}

TEST_CASE("class means and predictions equal inclearn's", "[icarl]") {
  const auto theirs = golden_record("icarl/inclearn");
  const auto features = formula_tensor("icarl.features", {30, 8}), flipped = formula_tensor("icarl.flipped", {30, 8});
  const auto unit = [](const at::Tensor& x) { return x / (x.norm(2, {1}, true) + 1e-8); };
  class_mean_sums server;
  for (const numbers& places : {numbers{0, 2}, numbers{5}}) { // two clients with three exemplars of each class
    auto sums = at::zeros({3, 8});
    for (std::int64_t c = 0; c < 3; ++c)
      for (const auto place : places)
        sums[c] += unit(features)[c + 3 * place] + unit(flipped)[c + 3 * place];
    tensor_map upload;
    upload.put(class_sums_name, sums);
    upload.put(class_counts_name, at::full({3}, static_cast<double>(places.size()), at::kFloat));
    server.add(upload);
  }
  server.update();
  CHECK(largest_difference_of(server.means(), listed_tensor(theirs["means"], {3, 8})) < 1e-6);
  const auto answers = unit(formula_tensor("icarl.queries", {20, 8})).mm(server.means().t()).argmax(1);
  CHECK(at::equal(answers, labels_of(theirs["answers"])));
}

TEST_CASE("class means pool all rows, have length 1, and persist for classes without uploads", "[icarl]") {
  class_mean_sums server;
  server.update();
  CHECK_FALSE(server.means().defined());
  server.add(*sums_of({3, 4, 0, 0}, {2, 0}));
  server.add(*sums_of({3, 4, 0, 0}, {2, 0})); // doubled rows have the same direction
  server.update();
  CHECK(largest_difference_of(server.means(), at::tensor({0.6, 0.8, 0.0, 0.0}, at::kDouble)) < 1e-7);
  server.add(*sums_of({0, 0, 0, 5}, {0, 1}));
  server.update();
  CHECK(largest_difference_of(server.means(), at::tensor({0.6, 0.8, 0.0, 1.0}, at::kDouble)) < 1e-7);
}

TEST_CASE("in a task's last round clients send sums over exemplars and current rows", "[icarl]") {
  const rehearsing_client client("icarl", {2, 2}, {{"memory", "8"}});
  const auto earlier = client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 5)));
  CHECK_FALSE(earlier.upload->find(class_sums_name));
  const auto last = client.round(client.work(client.sent(1, true), client.rows_of(0, 1, 5)));
  // Four exemplars of each old class; two of each new one, 8 / 4.
  CHECK(at::equal(last.upload->at(class_counts_name), at::tensor({4.0F, 4.0F, 2.0F, 2.0F})));
  const rehearsing_client plain("icarl", {2, 2}, {{"memory", "8"}, {"readout", "argmax"}});
  CHECK_FALSE(plain.round(plain.work(plain.sent(1, true), plain.rows_of(0, 1, 5))).upload->find(class_sums_name));
}

TEST_CASE("the server predicts by nearest means only after a task's last round", "[icarl]") {
  const rehearsing_client client("icarl", {2, 2}, {{"memory", "8"}});
  const auto server = client.method->make_server();
  job_channel channel;
  server_context ctx(channel);
  const auto first = client.sent(0, false), last = client.sent(0, true), next = client.sent(1, false);
  (void)run_step(server->open_task(ctx, first.info), channel, *client.device);
  const auto fold = [&](const broadcast& in) {
    const auto result = client.round(client.work(in, client.rows_of(0, 0, 5)));
    server->fold({.upload = result.upload, .rows = result.rows});
    run_step(server->close_round(ctx, in.info), channel, *client.device);
  };
  fold(first);
  CHECK(server->predict().kind == readout_kind::head);
  fold(last);
  CHECK(server->predict().kind == readout_kind::cosine);
  CHECK(server->predict().readout.sizes() == at::IntArrayRef{4, 5});
  CHECK_FALSE(server->open_round(first.info).extra); // no teacher in the first task
  (void)run_step(server->open_task(ctx, next.info), channel, *client.device);
  CHECK(server->predict().kind == readout_kind::head);
  CHECK(server->open_round(next.info).extra);
}

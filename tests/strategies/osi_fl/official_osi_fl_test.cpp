// The server of OSI-FL's official program, task by task, recorded by tools/research/official/osi_fl.py.
#include "strategies/osi_fl/retained_rows.hpp"
#include "strategies/osi_fl/weight_change_penalty.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/small_nets.hpp"
#include <catch2/catch_approx.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

constexpr std::int64_t classes = 4, rows = 40;

std::vector<std::int64_t> labels_of(std::int64_t task) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < rows; ++i)
    labels.push_back(2 * task + (i * i + i / 3) % 2);
  return labels;
}

std::shared_ptr<dataset> rows_of_both() {
  return small_nets::rows({{"task.first", labels_of(0)}, {"task.second", labels_of(1)}});
}

/// Training of the head as in the official program: over all classes, batch norms in training mode.
train_job training(const model_ref& net, const at::Tensor& start, sample_view samples, const nlohmann::json& settings) {
  train_job job{.net = net, .start = weights_only(start), .samples = std::move(samples)};
  job.options = {.epochs = settings.at("epochs"),
                 .batch_rows = settings.at("batch"),
                 .learning_rate = settings.at("rate"),
                 .momentum = settings.value("momentum", 0.0),
                 .trained = trainable_part::head,
                 .in_order = true,
                 .classes = {0, classes},
                 .update_running_stats = true};
  return job;
}

at::Tensor trained(train_job job) {
  return weights_of(make_executor("cpu")->run(std::vector<mneme::job>{{.id = {}, .request = std::move(job)}})[0]);
}

std::vector<double> losses_of(const model_ref& net, const at::Tensor& flat, const sample_view& samples,
                              const std::vector<std::int64_t>& labels) {
  const auto shown =
      run_plan(*make_executor("cpu"), {extract_job{.net = net, .weights = weights_only(flat), .samples = samples}});
  const auto logits = std::get<extract_output>(std::get<work_output>(shown[0])).logits.to(at::kDouble);
  const auto values = -at::log_softmax(logits, 1).gather(1, at::tensor(labels).unsqueeze(1)).flatten().contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

sample_view view_of_rows(const std::shared_ptr<dataset>& source, std::vector<std::int64_t> listed) {
  return {.source = source, .rows = std::make_shared<const std::vector<std::int64_t>>(std::move(listed))};
}

} // namespace

TEST_CASE("two tasks equal the official server's: head, updated statistics, and retained images",
          "[official][osi-fl]") {
  official_steps both("osi_fl/top_k");
  const auto net = small_nets::net(classes);
  const auto source = rows_of_both();
  auto flat = small_nets::weights(*net, "");
  std::vector<std::int64_t> memory;
  for (std::size_t task = 0; task < 2; ++task) {
    CAPTURE(task);
    const auto first = static_cast<std::int64_t>(task) * rows;
    const auto current = rows_from(source, first, rows);
    auto pool = *current.rows;
    pool.insert(pool.end(), memory.begin(), memory.end()); // new images come first
    flat = trained(training(net, flat, view_of_rows(source, pool), both["settings"]));
    const auto where = fmt::format("task {} ", task + 1);
    small_nets::compare(both, where, *net, flat, both["nets"][task], 1e-5);

    const auto labels = labels_of(static_cast<std::int64_t>(task));
    const auto chosen = retained_rows(losses_of(net, flat, current, labels), labels, both["settings"].at("kept"));
    both.equal(where + "retained rows", both["chosen"][task], chosen);
    for (const auto place : chosen)
      memory.push_back(first + place);
  }
}

TEST_CASE("OSCAR-R's official variant weights changes by tensor size and has no penalty in the first task",
          "[official][osi-fl]") {
  official_steps both("osi_fl/held_back");
  const auto net = small_nets::net(classes);
  const auto source = rows_of_both();
  auto flat = small_nets::weights(*net, "");
  for (std::size_t task = 0; task < 2; ++task) {
    CAPTURE(task);
    auto job = training(net, flat, rows_from(source, static_cast<std::int64_t>(task) * rows, rows), both["settings"]);
    if (task > 0)
      job.objective = weight_change_penalty(*net, both["settings"].at("weight"));
    flat = trained(std::move(job));
    small_nets::compare(both, fmt::format("task {} ", task + 1), *net, flat, both["nets"][task], 1e-5);
  }
}

TEST_CASE("training the head with updated statistics leaves the rest of the frozen part unchanged") {
  const auto net = small_nets::net(classes);
  const auto start = small_nets::weights(*net, "");
  auto job = training(net, start, rows_from(rows_of_both(), 0, rows), {{"epochs", 1}, {"batch", 8}, {"rate", 0.1}});
  const auto moved = trained(job);
  job.options.update_running_stats = false;
  const auto still = trained(job);
  for (const auto& entry : net->layout()) {
    CAPTURE(entry.name);
    const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, entry.offset, entry.size); };
    CHECK(at::equal(part(moved), part(start)) == !(entry.head || entry.buffer));
    CHECK(at::equal(part(still), part(start)) == !entry.head);
  }
}

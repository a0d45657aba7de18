/// method_federation: one method and three clients without actors, small enough to test every method.
#pragma once
#include "runtime/base/archive.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/small_convit.hpp"
#include "tests/support/small_prompted_vit.hpp"
namespace mneme::test {

struct method_federation {
  static constexpr std::int64_t features = 6, classes = 4, classes_of_task = 2;
  static constexpr std::uint32_t clients = 3, tasks = 2;

  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device;
  std::shared_ptr<const dataset> rows = striped_rows(40, features, classes);
  model_ref net;
  listed_rows central{rows, [this](std::uint32_t) { return rows_with_labels({0, classes_of_task}); }};
  round_info info{.seen_classes = {0, classes_of_task}, .current_classes = {0, classes_of_task}};
  generated_row_store made{row_format{.scale = rows->scale, .shift = rows->shift, .classes = classes}};
  method_setup setup; ///< The setup passed to prepare().

  /// @param keys of [strategy], in addition to those that keep the method small @param on executor's device
  explicit method_federation(const std::string& name, const std::vector<std::pair<std::string, std::string>>& keys = {},
                             const std::string& on = "cpu", const training_section& training = {.batch = 4})
      : method(strategy_named(name)), device(make_executor(on)), net(net_for(*method)) {
    give_keys(*method, small(name));
    give_keys(*method, keys);
    setup = setup_of_run(net, features, tasks);
    setup.initial = weights_only(setup.initial->at(flat_weights).to(at::Device(on)));
    setup.training = training;
    setup.classes = classes;
    setup.task_classes = {{0, 2}, {2, 4}};
    setup.clients = clients;
    setup.oracle = true;
    method->prepare(setup);
  }
  method_federation(const method_federation&) = delete; // because `central` holds a pointer to it

  /// Position of a round in a task.
  [[nodiscard]] static round_info place_in(std::uint32_t task, std::uint32_t round) {
    auto where = class_task(task, classes_of_task);
    where.round = {round};
    return where;
  }
  /// Assignment of client c for a broadcast; it holds rows of the classes of the broadcast's task.
  [[nodiscard]] assignment work_for(std::uint32_t c, const broadcast& in, memory_ref memory) const {
    std::vector<std::int64_t> mine;
    for (const auto row : rows_with_labels(in.info.current_classes))
      if (row / classes % clients == c)
        mine.push_back(row);
    return {.id = {c},
            .client = {c},
            .in = std::make_shared<const broadcast>(in),
            .memory = std::move(memory),
            .samples = view_of(rows, mine),
            .seed = 5,
            .visit = in.info.round.value};
  }

private:
  /// Keys that shorten methods whose defaults take seconds or minutes.
  static std::vector<std::pair<std::string, std::string>> small(const std::string& name) {
    if (name == "osi-fl")
      return {{"images", "4"}, {"sampling_steps", "2"}, {"denoiser_passes", "1"}};
    if (name == "lander")
      return {{"generator_rounds", "2"}, {"warm_up", "1"}, {"generator_steps", "2"}, {"student_steps", "2"}};
    if (name == "target")
      return {{"generator_rounds", "2"}, {"generator_steps", "2"}, {"generator_batch", "8"}, {"replay_rows", "4"}};
    if (name == "mfcl")
      return {{"generator_steps", "2"}, {"generator_batch", "8"}, {"replay_rows", "4"}, {"code_width", "8"}};
    if (name == "fed-cil")
      return {{"local_steps", "2"}, {"consolidation_steps", "2"}};
    if (name == "fil-ver")
      return {{"vee_epochs", "2"}, {"server_steps", "2"}};
    if (name == "stsa")
      return {{"projection_width", "32"}};
    if (name == "lga" || name == "glfc")
      return {{"memory", "8"}, {"reconstruction_steps", "2"}, {"images_per_gradient", "1"}, {"proxy_init", "0"}};
    return {};
  }
  /// Net that the method requires, or a small default.
  static model_ref net_for(const strategy& method) {
    const auto own = method.needs().defaults;
    const std::string lead = "[model]\nname = \"";
    const auto first = own.find(lead);
    if (first == std::string::npos)
      return model_named("mlp", {1, 1, features}, classes + method.needs().extra_outputs);
    const auto behind = own.substr(first + lead.size()), name = behind.substr(0, behind.find('"'));
    if (name == "convit")
      return row_convit({2, 2}, features);
    if (name == "vit")
      return row_prompted_vit(method.needs().prompts, {{0, 2}, {2, 4}}, features);
    return model_named(name, {1, 1, features}, classes);
  }
  [[nodiscard]] std::vector<std::int64_t> rows_with_labels(class_range wanted) const {
    std::vector<std::int64_t> numbers;
    for (std::int64_t r = 0; r < rows->files_rows(); ++r)
      if (rows->label(r) >= wanted.low && rows->label(r) < wanted.high)
        numbers.push_back(r);
    return numbers;
  }
};

/// Archive that reads what `saved` has written.
inline archive loading_from(const archive& saved) {
  const auto bytes = saved.contents();
  return {bytes, 0, bytes->size()};
}

} // namespace mneme::test

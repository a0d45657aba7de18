/// rehearsing_client: client of a class-incremental method with exemplars. It runs rounds of its tasks on a few
/// generated rows, and single steps of its jobs' objectives.
#pragma once
#include "runtime/method/gradients.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/shown_steps.hpp"
#include <functional>
namespace mneme::test {

/// Inputs of one model's training step, float32.
struct rehearsed_step {
  at::Tensor logits{}, labels{};              ///< [B, C], [B]
  at::Tensor teacher{}, features{}, taught{}; ///< [B, O]; [B, D] of net and teacher
  std::vector<at::Tensor> maps{}, old_maps{}; ///< [B, channels, height, width]
  at::Tensor targets{};                       ///< [B, C]
  std::int64_t replayed = 0;                  ///< Number of replayed rows, at the end.
  std::int64_t padded = 0;                    ///< Number of padding rows after the client's own.

  [[nodiscard]] loss_output loss_of(const loss& objective) const {
    const auto own = logits.size(0) - replayed;
    auto weight = at::full({logits.size(0)}, 1.0 / static_cast<double>(own), at::kFloat);
    if (replayed > 0)
      weight.narrow(0, own, replayed).fill_(1.0 / static_cast<double>(replayed));
    const auto z = with_padding(logits, own, 9.0F).unsqueeze(0), w = with_padding(weight, own, 0.0F).unsqueeze(0);
    const auto y = with_padding(labels, own, -1).unsqueeze(0);
    const auto x = features.defined() ? with_padding(features, own, 3.0F).unsqueeze(0) : z;
    const auto stacked = [](const std::vector<at::Tensor>& list) {
      std::vector<at::Tensor> of_model;
      for (const auto& map : list)
        of_model.push_back(map.unsqueeze(0));
      return of_model;
    };
    const auto shown = stacked(maps), before = stacked(old_maps);
    const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
    loss_input in{.logits = z, .features = x, .labels = y, .row_weight = w, .auxiliaries = auxiliaries};
    in.maps = shown;
    in.replayed = replayed;
    if (teacher.defined() || taught.defined()) {
      auto& outputs = in.teachers.emplace_back();
      outputs.maps = before;
      if (teacher.defined())
        outputs.logits = with_padding(teacher, own, 5.0F).unsqueeze(0);
      if (taught.defined())
        outputs.features = with_padding(taught, own, 2.0F).unsqueeze(0);
    }
    if (targets.defined())
      in.targets = with_padding(targets, own, 0.0F).unsqueeze(0);
    return objective(in);
  }

private:
  template <class Value>
  [[nodiscard]] at::Tensor with_padding(const at::Tensor& rows, std::int64_t own, Value value) const {
    if (padded == 0)
      return rows;
    auto sizes = rows.sizes().vec();
    sizes[0] = padded;
    return at::cat(
        {rows.narrow(0, 0, own), at::full(sizes, value, rows.options()), rows.narrow(0, own, rows.size(0) - own)});
  }
};

/// Values of rows by a formula, and the gradient of their sum.
struct row_results {
  at::Tensor values{}, gradient{};
};
inline row_results results_of(const at::Tensor& input, const std::function<at::Tensor(const at::Tensor&)>& formula) {
  const auto leaf = leaf_of(input), values = formula(leaf);
  return {.values = values.detach(), .gradient = gradients_of(values.sum(), {leaf}).front()};
}

/// formula() of tests/support/formula.hpp times `scale`, equal to made() in tools/research/export/official/learners.py.
inline at::Tensor formula_tensor(const std::string& name, const std::vector<std::int64_t>& shape, double scale = 1.0) {
  const auto values = formula(name, c10::multiply_integers(shape));
  return at::tensor(values).view(shape) * scale;
}
inline at::Tensor listed_tensor(const nlohmann::json& values, const std::vector<std::int64_t>& shape) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble).view(shape);
}
inline double largest_difference_of(const at::Tensor& ours, const at::Tensor& theirs) {
  return (ours.to(at::kDouble).flatten() - theirs.to(at::kDouble).flatten()).abs().max().item<double>();
}
inline at::Tensor labels_of(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<std::int64_t>>(), at::kLong);
}

struct rehearsing_client {
  static constexpr std::int64_t features = 5;
  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const dataset> rows;
  method_setup setup;

  /// @param sizes number of classes of each task
  rehearsing_client(const std::string& name, const std::vector<std::int64_t>& sizes, const key_list& keys = {},
                    const model_ref& net = nullptr)
      : method(strategy_named(name)) {
    std::int64_t classes = 0;
    std::vector<class_range> tasks;
    for (const auto size : sizes) {
      tasks.push_back({classes, classes + size});
      classes += size;
    }
    rows = striped_rows(20 * classes, features, static_cast<std::int32_t>(classes));
    give_keys(*method, keys.pairs);
    setup = setup_of_run(net ? net : model_named("linear", {1, 1, features}, classes), features,
                         static_cast<std::int64_t>(sizes.size()));
    setup.task_classes = tasks;
    setup.training = {.epochs = 1, .batch = 4, .learning_rate = 0.1};
    setup.weighting = upload_weighting::uniform;
    method->prepare(setup);
  }
  /// `count` rows of each class of the tasks first to last.
  [[nodiscard]] std::vector<std::int64_t> rows_of(std::size_t first, std::size_t last, std::int64_t count) const {
    std::vector<std::int64_t> numbers;
    for (auto c = setup.task_classes[first].low; c < setup.task_classes[last].high; ++c)
      for (std::int64_t i = 0; i < count; ++i)
        numbers.push_back(c + i * setup.classes);
    return numbers;
  }
  /// @param extra additional tensors of the broadcast; default from task 2 on: a teacher
  [[nodiscard]] broadcast sent(std::uint32_t task, bool last_round, tensors_ref extra = nullptr) const {
    const auto own = setup.task_classes[task];
    const std::int64_t rounds = 3;
    round_info info{.round = {task * 3 + (last_round ? 2U : 0U)},
                    .task = {task},
                    .round_of_task = last_round ? rounds - 1 : 0,
                    .rounds_of_task = rounds,
                    .seen_classes = {0, own.high},
                    .current_classes = own};
    if (!extra && task > 0)
      extra = weights_only(initial_weights(*setup.net, 77));
    return {.info = info, .weights = setup.initial, .extra = extra};
  }
  [[nodiscard]] assignment work(const broadcast& in, std::vector<std::int64_t> own, memory_ref memory = nullptr) const {
    return {.in = std::make_shared<const broadcast>(in),
            .memory = std::move(memory),
            .samples = view_of(rows, std::move(own)),
            .seed = 5};
  }
  [[nodiscard]] client_result round(const assignment& assigned) const { return run_round(*method, *device, assigned); }
  /// Training job of a round in which the client holds four rows of each class so far.
  [[nodiscard]] train_job training(std::uint32_t task, bool last_round = false, tensors_ref extra = nullptr) const {
    return jobs_of_kind<train_job>(
               jobs_of_round(*method, *device, work(sent(task, last_round, std::move(extra)), rows_of(0, task, 4))))
        .at(0);
  }
};

} // namespace mneme::test

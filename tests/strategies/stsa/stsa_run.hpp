/// stsa_run: STSA without actors: rounds of clients, folds and solves on a few rows.
#pragma once
#include "runtime/base/triangle.hpp"
#include "strategies/stsa/random_features.hpp"
#include "tests/support/shown_steps.hpp"
#include <numeric>
namespace mneme::test::stsa_case {

inline constexpr std::int64_t features = 12, classes = 6, rows = 240, width = 30;
using key_texts = std::vector<std::pair<std::string, std::string>>;
using dealt_rows = std::vector<std::vector<std::int64_t>>; // [clients]

/// Rows of random pixels, so that two rows of a class differ. Row r has class r mod `classes`. Its label is that number
/// unless `label_of_class` gives another.
inline std::shared_ptr<const dataset> drawn_rows_of_classes(const std::vector<std::int32_t>& label_of_class = {}) {
  auto made = std::make_shared<dataset>(*striped_rows(rows, features, classes));
  made->images = at::empty({rows, 1, 1, features}, at::kByte);
  rng_stream draw({.seed = 3, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made->images.numel(); ++i)
    made->images.mutable_data_ptr<std::uint8_t>()[i] =
        static_cast<std::uint8_t>(draw.below(200) + 7 * (i / features % classes));
  for (auto& label : made->labels)
    label = label_of_class.empty() ? label : label_of_class[static_cast<std::size_t>(label)];
  return made;
}

/// Run of STSA on pixels: `tasks` tasks of equal size.
class stsa_run {
public:
  stsa_run(const key_texts& keys, std::int64_t clients, std::int64_t tasks = 3,
           const std::vector<std::int32_t>& label_of_class = {})
      : clients_(clients), tasks_(tasks), source_(drawn_rows_of_classes(label_of_class)) {
    key_texts texts{{"adaptation", "none"}, {"projection_width", std::to_string(width)}, {"ridge", "3.5"}};
    texts.insert(texts.end(), keys.begin(), keys.end());
    give_keys(*method_, texts);
    auto setup = setup_of_run(net_, features, tasks);
    setup.weighting = upload_weighting::uniform;
    setup.classes = classes; // the net has no head
    for (std::uint32_t t = 0; t < tasks; ++t)
      setup.task_classes.push_back(class_task(t, classes / tasks).current_classes);
    setup.clients = clients;
    CHECK(method_->check(setup).empty());
    method_->prepare(setup);
    server_ = method_->make_server();
  }

  /// One task: `dealt` gives the rows of each client, `order` the order in which clients upload.
  void learn(std::uint32_t task, const dealt_rows& dealt, const std::vector<std::uint32_t>& order,
             const std::vector<std::vector<std::int32_t>>& marks = {}) {
    auto info = class_task(task, classes / tasks_);
    info.round = {task};
    job_channel channel;
    server_context ctx(channel);
    const auto opened = run_step(server_->open_task(ctx, info), channel, *device_);
    CHECK((opened.rounds == 1 && opened.all_enrolled && opened.clients_without_rows));
    auto in = server_->open_round(info);
    in.info = info;
    sent_ = std::make_shared<const broadcast>(in);
    for (const auto& late : late_)
      server_->fold(late);
    late_.clear();
    for (const auto c : order)
      server_->fold(
          answer(c, dealt.at(c), marks.empty() ? nullptr : std::make_shared<std::vector<std::int32_t>>(marks.at(c))));
    run_shown_step(server_->close_round(ctx, info), channel, *device_, [this](const plan& wanted) {
      if (const auto* const asked = std::get_if<compute_job>(&wanted.at(0)); asked->in->find("ridge"))
        equations_ = asked->in;
    });
  }
  /// The client uploads for the last round only after the next task was opened.
  void answer_late(std::uint32_t client, const std::vector<std::int64_t>& rows_held) {
    late_.push_back(answer(client, rows_held, nullptr));
  }
  void learn_all(const std::function<dealt_rows(std::uint32_t)>& dealt) {
    std::vector<std::uint32_t> order(static_cast<std::size_t>(clients_));
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<std::uint32_t>(order.size() - 1 - i);
    for (std::uint32_t t = 0; t < tasks_; ++t)
      learn(t, dealt(t), order);
  }

  /// W transposed, [C, M].
  [[nodiscard]] at::Tensor readout() const { return server_->predict().readout.to(at::kDouble); }
  /// Inputs of the last solve: G [M, M] and C transposed [seen classes, M].
  [[nodiscard]] at::Tensor gram() const { return square(equations_->at("gram"), width); }
  [[nodiscard]] at::Tensor sums() const { return equations_->at("sums"); }
  [[nodiscard]] predictor learned() const { return server_->predict(); }
  [[nodiscard]] std::map<std::string, double> summary_metrics() const { return server_->summary_metrics(); }
  [[nodiscard]] const tensor_map& last_upload() const { return *uploaded_; }

  /// Rows of task t dealt over the clients at random.
  [[nodiscard]] dealt_rows at_random(std::uint32_t task, std::uint64_t seed) const {
    dealt_rows dealt(static_cast<std::size_t>(clients_));
    rng_stream draw({.seed = seed, .purpose = first_method_purpose, .task = {task}});
    for (std::int64_t r = 0; r < rows; ++r)
      if (source_->label(r) / (classes / tasks_) == task)
        dealt[draw.below(dealt.size())].push_back(r);
    return dealt;
  }
  /// Random features of all rows, [rows, M], and one-hot labels [rows, C].
  [[nodiscard]] at::Tensor h() const {
    std::vector<std::int64_t> values(rows);
    std::iota(values.begin(), values.end(), 0);
    const std::vector<job> single{
        {.request =
             extract_job{.net = net_, .weights = weights_only(at::zeros({0})), .samples = view_of(source_, values)}}};
    const auto seen = std::get<extract_output>(std::get<work_output>(device_->run(single).at(0)));
    const auto projection = random_projection({.seed = 5, .purpose = first_method_purpose}, features, width);
    return at::relu(seen.features.to(at::kDouble).mm(projection));
  }
  [[nodiscard]] static at::Tensor y() { return at::one_hot(at::arange(rows) % classes, classes).to(at::kDouble); }

private:
  delivery answer(std::uint32_t client, const std::vector<std::int64_t>& rows_held,
                  std::shared_ptr<const std::vector<std::int32_t>> marks) {
    auto samples = view_of(source_, rows_held);
    samples.marks = std::move(marks);
    const assignment assigned{.id = {client}, .client = {client}, .in = sent_, .samples = samples, .seed = 5};
    const auto result = run_round(*method_, *device_, assigned);
    uploaded_ = result.upload;
    return {.assignment = {client},
            .from = {client},
            .started_from = sent_->info.round,
            .upload = result.upload,
            .rows = result.rows};
  }

  std::int64_t clients_, tasks_;
  std::unique_ptr<strategy> method_ = strategy_named("stsa");
  std::unique_ptr<executor> device_ = make_executor("cpu", std::make_shared<feature_store>());
  std::shared_ptr<const dataset> source_;
  model_ref net_ = model_named("identity", {1, 1, features}, classes);
  std::unique_ptr<server_half> server_;
  broadcast_ref sent_;
  std::vector<delivery> late_;
  tensors_ref uploaded_, equations_;
};

/// |a - b| / |b|
inline double relative(const at::Tensor& a, const at::Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

} // namespace mneme::test::stsa_case

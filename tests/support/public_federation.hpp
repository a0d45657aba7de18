/// public_federation: the federation for which tools/research/export/official has recorded official programs.
#pragma once
#include "tests/support/golden.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/nets.hpp"
namespace mneme::test {

/// All parameters in file order, concatenated.
inline at::Tensor in_file_order(const model& net, const at::Tensor& flat) {
  std::vector<at::Tensor> parts;
  for (const auto& entry : net.layout())
    parts.push_back(as_in_files(flat, entry).flatten());
  return at::cat(parts).contiguous();
}
inline at::Tensor from_file_order(const model& net, const std::vector<float>& values) {
  auto flat = at::zeros({net.size()});
  std::int64_t first = 0;
  for (const auto& entry : net.layout()) {
    put_as_in_files(flat, entry, floats(values).narrow(0, first, entry.size).view(entry.shape));
    first += entry.size;
  }
  REQUIRE(first == std::ssize(values));
  return flat;
}

/// Golden record, and a method that repeats it: the same rows in the same order, round by round.
class public_federation {
public:
  using key_texts = std::vector<std::pair<std::string, std::string>>;
  public_federation(const std::string& record, const std::string& name, const key_texts& keys,
                    upload_weighting weighting = upload_weighting::samples)
      : record_(golden_record(record)), method_(strategy_named(name)), net_(mlp_of({4}, 3, 3)) {
    give_keys(*method_, keys);
    auto setup = setup_of_run(net_, 3, 3);
    setup.initial = weights_only(from_file_order(*net_, record_.at("initial").get<std::vector<float>>()));
    const auto& with = record_.at("settings");
    setup.training = {.epochs = with.value("epochs", std::int64_t{1}),
                      .batch = with.value("batch", std::int64_t{0}),
                      .learning_rate = with.value("learning_rate", 0.1),
                      .momentum = with.value("momentum", 0.0),
                      .weight_decay = with.value("weight_decay", 0.0)};
    setup.weighting = weighting;
    setup.clients = std::ssize(record_.at("rows"));
    method_->prepare(setup);
    server_ = method_->make_server();
  }
  [[nodiscard]] const nlohmann::json& record() const { return record_; }

  /// A round in which client c has rows[c], of a data set that all tasks share.
  void round(const std::vector<sample_view>& rows, std::uint32_t task = 0) {
    open(task);
    for (std::uint32_t c = 0; c < rows.size(); ++c) {
      auto result = trained({.client = {c},
                             .in = std::make_shared<const broadcast>(sent_),
                             .memory = memories_[c],
                             .samples = rows[c],
                             .seed = 1,
                             .visit = info_.round.value});
      memories_[c] = result.memory ? result.memory : memories_[c];
      fold(c, result.upload, result.rows);
    }
    close();
  }
  /// A round with the given uploads.
  void round_of_uploads(const nlohmann::json& uploads) {
    open(0);
    for (std::uint32_t c = 0; c < uploads.size(); ++c)
      fold(c, weights_only(from_file_order(*net_, uploads[c].get<std::vector<float>>())),
           std::ssize(record_.at("rows")[c]));
    close();
  }
  /// Largest difference from the recorded weights after the rounds so far.
  [[nodiscard]] double difference() const {
    const auto expected = record_.at("after_rounds").at(info_.round.value - 1).get<std::vector<float>>();
    return largest_difference(in_file_order(*net_, server_->predict().weights->at(flat_weights)), floats(expected));
  }

private:
  void open(std::uint32_t task) {
    info_.task = {task};
    info_.round_of_task = task == 0 ? info_.round.value : 0;
    if (info_.round_of_task == 0)
      (void)run_step(server_->open_task(ctx_, info_), channel_, *device_);
    sent_ = server_->open_round(info_);
    sent_.info = info_;
  }
  client_result trained(assignment assigned) {
    generated_row_store made;
    client_round_runner run(*method_, std::move(assigned), &made);
    auto step = run.start();
    while (auto* wanted = std::get_if<plan>(&step)) {
      for (auto& request : *wanted)
        if (auto* const training = std::get_if<train_job>(&request))
          training->options.in_order = true;
      step = run.resume(run_plan(*device_, std::move(*wanted)));
    }
    if (auto* failure = std::get_if<round_failure>(&step))
      FAIL("the round failed: " << failure->reason);
    return std::get<client_result>(std::move(step));
  }
  void fold(std::uint32_t c, tensors_ref upload, std::int64_t rows) {
    server_->fold({.from = {c}, .started_from = info_.round, .upload = std::move(upload), .rows = rows});
  }
  void close() {
    run_step(server_->close_round(ctx_, info_), channel_, *device_);
    ++info_.round.value;
  }

  nlohmann::json record_;
  std::unique_ptr<strategy> method_;
  model_ref net_;
  std::unique_ptr<server_half> server_;
  std::unique_ptr<executor> device_ = make_executor("cpu");
  job_channel channel_;
  server_context ctx_{channel_};
  round_info info_{.rounds_of_task = 3, .seen_classes = {0, 3}, .current_classes = {0, 3}};
  broadcast sent_;
  std::map<std::uint32_t, memory_ref> memories_;
};

/// Rows and labels of several clients or tasks in one data set. Returns a view of each.
inline std::vector<sample_view> views_of(const nlohmann::json& rows, const nlohmann::json& labels) {
  auto source = std::make_shared<dataset>();
  source->transforms.resize(1);
  std::vector<float> values;
  std::vector<std::vector<std::int64_t>> numbers;
  for (std::size_t part = 0; part < rows.size(); ++part) {
    auto& own = numbers.emplace_back();
    for (std::size_t i = 0; i < rows[part].size(); ++i) {
      own.push_back(std::ssize(source->labels));
      source->labels.push_back(labels[part][i].get<std::int32_t>());
      for (const auto& value : rows[part][i])
        values.push_back(value.get<float>());
    }
  }
  source->vectors = floats(values).view({std::ssize(source->labels), -1});
  std::vector<sample_view> views;
  for (auto& own : numbers)
    views.push_back(view_of(source, std::move(own)));
  return views;
}

} // namespace mneme::test

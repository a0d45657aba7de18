/// pilora_server: PILoRA's server half, and the settings that it shares with the client half.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/low_rank_vit.hpp"
#include "strategies/baselines/pilora/pilora_parts.hpp"
namespace mneme::pilora_method {

// Axes: d channels, r rank, c classes of the task, n classes of the task of which a client has rows.

/// LoRAs of the evaluated net: the sum over all tasks, the first plus the current one, or only the first (official).
enum class evaluated_parts : std::uint8_t { sum, first_and_present, released };

constexpr const char* task_centers = "centers";      // [c, d]
constexpr const char* earlier_centers = "earlier";   // [classes of earlier tasks, d]
constexpr const char* class_means = "means";         // [n, d]
constexpr const char* classes_of_means = "means.of"; // [n] int64; counted from 0 within the task

/// Options of the method.
struct options {
  prompt_shape parts{.form = prompt_form::low_rank, .blocks = {0}};
  pilora_weights weights{};
  double low_rank_rate = 1e-5, temperature = 0.2;
  evaluated_parts evaluate = evaluated_parts::sum;
  bool late_schedule = false;
};

/// Settings that both halves share.
struct run_settings {
  options settings{};
  method_setup setup{};
  std::shared_ptr<const low_rank_vit> net{};

  [[nodiscard]] const parameter& entry(std::size_t place) const { return net->layout()[place]; }
  [[nodiscard]] const parameter& centers() const { return entry(net->centers()); }
  /// Parameters of the LoRA: A and B of queries and of values, block by block.
  [[nodiscard]] std::vector<parameter> low_rank() const {
    std::vector<parameter> entries;
    for (const auto& own : net->parts())
      for (const auto place : {own.query_down, own.query_up, own.value_down, own.value_up})
        entries.push_back(entry(place));
    return entries;
  }
};

/// The centers of some classes within `flat` [P], as a view [classes, d].
[[nodiscard]] at::Tensor centers_of(const run_settings& run, const at::Tensor& flat, class_range classes);

/// An upload of the open round, with its weight in the mean of LoRAs.
struct kept_upload {
  tensors_ref tensors{};
  double rows = 0.0;
  void persist(archive& state) { state(tensors)(rows); }
};

/// Averages LoRAs, weighted by rows, and centers, weighted by center_weights(). Stores the LoRAs of earlier tasks.
class pilora_server final : public server_half {
public:
  explicit pilora_server(std::shared_ptr<const run_settings> run)
      : run_(std::move(run)), initial_(run_->setup.initial), weights_(initial_->at(flat_weights)) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  broadcast open_round(const round_info& info) override;
  void fold(const delivery& in) override {
    if (in.started_from.value >= task_began_) // late uploads of an earlier task are ignored
      uploads_.push_back({in.upload, run_->setup.weighting == upload_weighting::samples ? double(in.rows) : 1.0});
  }
  task<void> close_round(server_context& ctx, const round_info& info) override;
  [[nodiscard]] predictor predict() const override;
  void persist(archive& state) override { state(opened_)(task_began_)(earlier_)(uploads_).frozen(weights_); }

private:
  void average_low_rank(at::Tensor& flat) const;
  void average_centers(at::Tensor& flat, class_range classes) const;
  [[nodiscard]] tensors_ref low_rank_now() const;
  [[nodiscard]] std::vector<tensors_ref> evaluated() const;

  std::shared_ptr<const run_settings> run_;
  tensors_ref initial_;
  at::Tensor weights_;               // [P] with the current LoRA and all centers
  std::vector<tensors_ref> earlier_; // LoRAs of earlier tasks, in the order of tasks
  std::vector<kept_upload> uploads_; // uploads of the open round, in delivery order
  std::int64_t opened_ = 0;          // number of opened tasks
  std::uint64_t task_began_ = 0;     // first round of the task
};

} // namespace mneme::pilora_method

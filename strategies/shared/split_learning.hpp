/// split_learning: methods that leave the run's net as it is, a frozen backbone, and learn a feature adjustment module
/// and a head behind it (FedHAF and what it is compared with).
#pragma once
#include "strategies/shared/adjustment_net.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/feature_memory.hpp"
namespace mneme {

/// Keys that all of them have.
struct split_options {
  adjustment_shape net{};
  matrix_draw draw = matrix_draw::kaiming;
  bool drawn_each_task = false; ///< Module and head begin anew with every task.
  std::string layer{};          ///< The map of the backbone whose means are features; empty: its own features.
  std::filesystem::path feature_cache{};
  void keys(key_table& table);
};

/// What both halves share. The backbone is public: everybody has it before the run, and it never travels.
struct split_net {
  method_setup whole{};  ///< What the run has told the method.
  method_setup learnt{}; ///< The same for module and head alone.
  model_ref backbone{};  ///< Without a head: what features come from.
  model_ref chain{};     ///< Backbone, module and head: what is evaluated and saved.
  tensors_ref backbone_weights{};
  [[nodiscard]] std::int64_t features() const { return backbone->feature_width(); }
};
[[nodiscard]] model_ref backbone_of(const method_setup& setup, const std::string& layer);
/// @param back reads rows of the backbone's features @param initial its weights
[[nodiscard]] split_net split(const method_setup& setup, model_ref backbone, model_ref back, const at::Tensor& initial);
/// What is wrong with the backbone, tasks and training: what a split net does not read, or reads differently.
[[nodiscard]] diagnostics wrong_with_backbone(const method_setup& setup, const std::string& layer);
/// feature_layer and feature_cache
void backbone_keys(key_table& table, std::string& layer, std::filesystem::path& cache);
/// The net with the present weights of its back.
[[nodiscard]] predictor predictor_of(const split_net& net, const at::Tensor& back);
/// The present task's rows as features: those remembered, or, in the client's first round of a task, new ones.
/// @param net outlives the task
[[nodiscard]] task<feature_memory> features_of_rows(client_context& ctx, const broadcast& in, const split_net& net,
                                                    exemplar_rules rules);

/// Averages module and head, running statistics included, and keeps those that the task began with, which it sends
/// with every round of a later task if asked to: anybody may take part for the first time.
class split_server : public averaging_server {
public:
  struct rules {
    bool sends_teacher = false;
    bool drawn_each_task = false;
    matrix_draw draw = matrix_draw::kaiming;
  };
  split_server(std::shared_ptr<const split_net> net, const rules& how)
      : averaging_server(net->learnt), net_(std::move(net)), how_(how) {}
  task<task_plan> open_task(server_context& ctx, const round_place& place) override;
  broadcast open_round(const round_place& place) override;
  [[nodiscard]] predictor predict() const override;
  void persist(archive& state) override;

private:
  std::shared_ptr<const split_net> net_;
  rules how_;
  tensors_ref teacher_{}; // null in task 1
};

/// The client half: FedAvg on the adjusted features of the client's rows, with hooks for what differs.
class split_method : public strategy {
public:
  void keys(key_table& table) override { with_.keys(table); }
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  [[nodiscard]] model_ref net_behind(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  [[nodiscard]] const std::vector<parameter>& wire_layout(const model&) const override {
    return net_->learnt.net->layout();
  }

protected:
  /// Training of module and head on these rows, with the round's options.
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, sample_view samples) const;
  [[nodiscard]] virtual loss_ref objective() const { return cross_entropy_objective(); }
  [[nodiscard]] virtual bool needs_teacher() const { return false; }
  [[nodiscard]] const split_net& net() const { return *net_; }
  [[nodiscard]] split_options& with() { return with_; }
  [[nodiscard]] const split_options& with() const { return with_; }

private:
  split_options with_;
  std::shared_ptr<const split_net> net_;
  loss_ref objective_;
};

} // namespace mneme

/// split_learning: base of methods that freeze the run's net as a backbone and train a feature adjustment module and a
/// head on its features (FedHAF and its baselines).
#pragma once
#include "strategies/shared/adjustment_net.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/feature_memory.hpp"
namespace mneme {

/// Keys that all split methods share.
struct split_options {
  adjustment_shape net{};
  matrix_draw draw = matrix_draw::kaiming;
  bool drawn_each_task = false; ///< True: module and head are drawn again at the start of every task.
  std::string layer{};          ///< Backbone map whose spatial means are the features; empty: the net's own features.
  std::filesystem::path feature_cache{};
  void keys(key_table& table);
};

/// Parts of a split net, shared by server and clients. The backbone is public: every client has it before the run, and
/// it is never sent.
struct split_model {
  method_setup whole{};      ///< Setup of the run.
  method_setup head_setup{}; ///< Setup of the run for module and head only.
  model_ref backbone{};      ///< Frozen feature extractor, without a head.
  model_ref chain{};         ///< Backbone, module and head: the net that is evaluated and saved.
  tensors_ref backbone_weights{};
  [[nodiscard]] std::int64_t features() const { return backbone->feature_width(); }
};
/// Returns the run's net as a backbone whose features are the spatial means of map `layer`, or the net itself if
/// `layer` is empty.
[[nodiscard]] model_ref backbone_of(const method_setup& setup, const std::string& layer);
/// Builds the parts. @param back module and head, a net on backbone features @param initial [P] weights of `back`
[[nodiscard]] split_model split(const method_setup& setup, model_ref backbone, model_ref back,
                                const at::Tensor& initial);
/// Validates the backbone, the tasks and [training] for a split method. Returns an empty list if the setup is valid.
[[nodiscard]] diagnostics validate_backbone_of_method(const method_setup& setup, const std::string& layer);
/// Declares the keys feature_layer and feature_cache.
void backbone_keys(key_table& table, std::string& layer, std::filesystem::path& cache);
/// Returns a predictor of the whole net with the weights `back` [P] of module and head.
[[nodiscard]] predictor predictor_of(const split_model& net, const at::Tensor& back);
/// Returns the features of the current task's rows. They are extracted in the client's first round of a task, and read
/// from its memory in later rounds.
/// @param net must outlive the task
[[nodiscard]] task<feature_memory> features_of_rows(client_context& ctx, const broadcast& in, const split_model& net,
                                                    exemplar_rules rules);

/// Averages module and head, including running statistics. Keeps the weights at the start of a task as the teacher. If
/// `sends_teacher` is set, sends the teacher in every round of the later tasks, because any client may participate for
/// the first time.
class split_server : public averaging_server {
public:
  struct rules {
    bool sends_teacher = false;
    bool drawn_each_task = false;
    matrix_draw draw = matrix_draw::kaiming;
  };
  split_server(std::shared_ptr<const split_model> net, const rules& how)
      : averaging_server(net->head_setup), net_(std::move(net)), how_(how) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  broadcast open_round(const round_info& info) override;
  [[nodiscard]] predictor predict() const override;
  void persist(archive& state) override;

private:
  std::shared_ptr<const split_model> net_;
  rules how_;
  tensors_ref teacher_{}; // null in the first task
};

/// The client half: FedAvg on the features of the client's rows. Derived methods override its hooks.
class split_method : public strategy {
public:
  void keys(key_table& table) override { options_.keys(table); }
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] upload_content uploads() const override { return upload_content::weights; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  [[nodiscard]] model_ref downstream_net(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  [[nodiscard]] const std::vector<parameter>& wire_layout(const model&) const override {
    return net_->head_setup.net->layout();
  }

protected:
  /// Returns a job that trains module and head on `samples` with the options of this round.
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, sample_view samples) const;
  [[nodiscard]] virtual loss_ref objective() const { return cross_entropy_objective(); }
  [[nodiscard]] virtual bool needs_teacher() const { return false; }
  [[nodiscard]] const split_model& net() const { return *net_; }
  [[nodiscard]] split_options& settings() { return options_; }
  [[nodiscard]] const split_options& settings() const { return options_; }

private:
  split_options options_;
  std::shared_ptr<const split_model> net_;
  loss_ref objective_;
};

} // namespace mneme

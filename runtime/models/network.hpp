/// network: a model whose layers read each other's results; the last layer is its head, if it has one.
#pragma once
#include "runtime/models/network_parts.hpp"
#include "runtime/models/row_wise_model.hpp"
namespace mneme {

/// The model that a network_builder builds.
class network final : public row_wise_model {
public:
  explicit network(network_parts parts)
      : net_(std::move(parts)), runs_on_cpu_(function_runs(net_, true)), runs_on_device_(function_runs(net_, false)) {}

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return net_.layout; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return net_.feature_width; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return net_.classes; }
  [[nodiscard]] std::int64_t positions() const noexcept override { return net_.positions; }
  [[nodiscard]] std::string identity() const override { return net_.identity; }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override;
  [[nodiscard]] bool couples_batch_rows() const noexcept override { return net_.couples_batch_rows; }
  [[nodiscard]] bool depends_on_row_count(class_range classes) const noexcept override;
  [[nodiscard]] const std::vector<dense_layer>* dense_layers() const noexcept override {
    return net_.dense.empty() ? nullptr : &net_.dense;
  }
  [[nodiscard]] bool trains_after_features(const parameter_choice& trained) const override;
  [[nodiscard]] bool uses_random_numbers() const noexcept override { return net_.drawing_layers > 0; }
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  [[nodiscard]] activations forward_from_features(const at::Tensor& weights, const at::Tensor& features,
                                                  class_range classes, tape& keep,
                                                  const training_mode& training) const override {
    return forward_from(net_.features, weights, features, classes, &keep, &training);
  }
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;
  [[nodiscard]] std::vector<std::string> maps() const override;
  /// Sentence for the user about the net's layers; "" if there is none.
  [[nodiscard]] const std::string& note() const noexcept { return net_.note; }
  /// A normalization layer with frozen running statistics is in evaluation mode and normalizes with them.
  [[nodiscard]] std::shared_ptr<const model> with_frozen(const std::vector<bool>& chosen) const override;

private:
  /// Role of a node in a training.
  struct node_role {
    bool learns = false; // like network_node::learns, but only trained parameters count
    bool trained = true; // true: in training mode
    bool fixed = false;  // true: the node's parameters are not trained
  };
  using node_roles = std::vector<node_role>;
  [[nodiscard]] activations forward_from(network_place first, const at::Tensor& weights, const at::Tensor& inputs,
                                         class_range classes, tape* keep, const training_mode* training) const;
  [[nodiscard]] std::int64_t width_of(network_place value, class_range classes) const;
  [[nodiscard]] node_roles roles_for(const parameter_choice& trained) const;
  [[nodiscard]] bool trains_parameters_of(const network_node& node, const parameter_choice& trained) const;
  [[nodiscard]] node_roles roles_in(const training_mode* training) const;
  [[nodiscard]] std::vector<bool> updated_statistics(const network_node& node, const training_mode* training) const;
  [[nodiscard]] at::Tensor function_of(std::size_t i, const function_pass& pass, const node_roles& roles,
                                       const at::Tensor& in, const at::Tensor& other) const;
  void run_node(std::size_t i, const layer_pass& pass, tape& with) const;
  [[nodiscard]] const std::vector<function_run>& runs(bool on_cpu) const {
    return on_cpu ? runs_on_cpu_ : runs_on_device_;
  }
  struct run_graph;
  [[nodiscard]] run_graph graph_of(const function_run& run, std::int64_t part, tape& with) const;
  [[nodiscard]] std::vector<at::Tensor> run_part(const function_run& run, const function_pass& pass,
                                                 const node_roles& roles, std::span<const at::Tensor> inputs,
                                                 const tape& with) const;
  void run_functions(const function_run& run, const layer_pass& pass, const node_roles& roles, tape& with) const;
  void show(const function_run& run, std::int64_t k, std::span<const at::Tensor> shown, const layer_pass& pass,
            tape& with) const;
  void backward_functions(const function_run& run, const layer_pass& pass, tape& with, const node_roles& roles,
                          const parameter_choice* trained, const gradient_sink& sink) const;
  [[nodiscard]] bool is_wanted_map(network_place value, const tape& with) const;
  [[nodiscard]] function_results one_by_one(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                            const function_mode& mode) const;
  [[nodiscard]] at::Tensor map_of(const network_map& marked, const at::Tensor& value) const;
  [[nodiscard]] const network_map& map_named(const std::string& name) const;
  void add_map_gradients(tape& with) const;
  [[nodiscard]] at::Tensor gradient_by_features(const at::Tensor& d_logits, const layer_pass& pass,
                                                const layer_pass& still, tape& with, const node_roles& roles,
                                                const gradient_sink& sink) const;
  network_place backward_from(network_place end, const layer_pass& pass, const layer_pass& still, tape& with,
                              const node_roles& roles, const parameter_choice* trained,
                              const gradient_sink& sink) const;
  void forget(tape& with, std::size_t done) const;
  void backward_node(std::size_t i, const layer_pass& pass, tape& with, const node_roles& roles,
                     const gradient_sink& sink) const;
  void backward_sum(std::size_t i, tape& with, const node_roles& roles) const;

  network_parts net_;
  std::vector<function_run> runs_on_cpu_, runs_on_device_;
};

} // namespace mneme

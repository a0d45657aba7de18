/// module_net: a net loaded from a module file, with a head that the run adds.
#pragma once
#include "runtime/models/function.hpp"
#include "runtime/modules/module_graph.hpp"
#include "runtime/modules/row_form.hpp"
#include <stdexcept>
namespace mneme {

class module_memory;

/// Properties of the net that loading has determined, apart from its graph.
struct module_shape {
  std::string file{};                  ///< File name, for errors.
  std::string digest{};                ///< Digest of the file, hexadecimal.
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row.
  row_form form = row_form::images;    ///< Shape and type in which forward() receives rows.
  std::int64_t width = 0;              ///< D, the number of values that forward() returns per row.
  std::int64_t classes = 0;            ///< Number of classes of the run; 0: no head.
  /// forward() returns class scores. Otherwise it returns features, and the run adds a head.
  bool scores = false;
  head_kind head = head_kind::linear;
  bool trained = false;          ///< True: parameters are trained, except those with requires_grad = False in the file.
  bool training = false;         ///< Training passes run in training mode. @pre trained
  std::int64_t rows_at_once = 1; ///< Rows per call of forward() in evaluation mode. It does not affect a row's result.
  std::int64_t row_bytes = 0;    ///< Bytes of all operator results for one row.
  std::shared_ptr<const model> native{}; ///< See user_module::native().
  std::string unfused{};                 ///< Why there is no native net although one was requested; "" otherwise.
};

/// The weights are the module's parameters under their own names, its float32 buffers, and the head. Parameters with
/// requires_grad = False in the file are frozen. Without module_shape::training, training uses evaluation mode: running
/// statistics keep the file's values and dropout is off. With it, a training pass is one call with all rows of the
/// step; it updates running statistics and draws dropout masks from the model's random stream. A batch norm is in
/// training mode if a parameter of its layer is trained or parameter_choice::updates_running_stats() is true. Dropout
/// is in training mode if any parameter of the module is trained. LibTorch's autograd computes the gradients. The
/// models of a fused group are computed one by one. Passes throw std::runtime_error with the file's name if forward()
/// fails, returns another shape than in its probe, or allocates more than pass_bytes_max().
class module_net final : public user_module {
public:
  module_net(std::shared_ptr<const module_graph> graph, module_shape shape);

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return layout_; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return shape_.width; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return shape_.classes; }
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override;
  [[nodiscard]] bool couples_batch_rows() const noexcept override { return couples_batch_rows_; }
  [[nodiscard]] bool uses_random_numbers() const noexcept override { return shape_.training && graph_->draws() > 0; }
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;

  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;

  [[nodiscard]] std::shared_ptr<const model> with_frozen(const std::vector<bool>& chosen) const override;

  [[nodiscard]] std::array<std::int64_t, 3> input() const noexcept override { return shape_.input; }

  void put_own_values(at::Tensor& flat) const override;
  [[nodiscard]] std::shared_ptr<const model> native() const override { return shape_.native; }
  [[nodiscard]] std::vector<std::string> warnings() const override;

private:
  struct model_pass;
  void add_parameter(parameter entry);
  void add_head();
  void record_row_coupling();
  template <class Use>
  void for_each_tensor(const Use& use) const;
  [[nodiscard]] bool in_layout(const module_graph::held_tensor& held) const;
  [[nodiscard]] bool trains(const module_graph::held_tensor& held) const;
  [[nodiscard]] bool moves(const module_graph::held_tensor& held) const;
  [[nodiscard]] bool trains_module(const parameter_choice& trained) const;
  [[nodiscard]] std::vector<bool> still_tensors(const parameter_choice& trained) const;
  [[nodiscard]] module_mode mode_of(const training_mode* training) const;
  [[nodiscard]] rng_key stream_of(const training_mode* training, std::int64_t k) const;
  [[nodiscard]] std::vector<at::Tensor> module_values(const at::Tensor& weights, bool learn) const;
  void put_moved(const at::Tensor& weights, std::span<const at::Tensor> values, const module_mode& mode) const;
  [[nodiscard]] batch_statistics statistics_of(const module_statistics& found, const at::Tensor& weights) const;
  [[nodiscard]] std::vector<at::Tensor> head_values(const at::Tensor& weights, class_range classes, bool learn) const;
  [[nodiscard]] std::int64_t pass_bytes_max(std::int64_t rows) const;
  [[nodiscard]] std::runtime_error failure(const std::string& step, const std::string& reason) const;
  template <class Act>
  void attempt(const std::string& step, const module_memory& memory, const Act& act) const;
  void check_result(const at::Tensor& result, const at::Tensor& rows, const std::string& place) const;
  [[nodiscard]] at::Tensor features_of(const at::Tensor& rows, std::span<const at::Tensor> values, bool of_step,
                                       const module_mode& mode) const;
  [[nodiscard]] at::Tensor logits_of(const at::Tensor& features, const std::vector<at::Tensor>& head,
                                     class_range classes) const;
  void put_on(tape& keep, model_pass pass) const;
  [[nodiscard]] model_pass taken_from(tape& keep, std::size_t models) const;
  void backward_model(const model_pass& passed, class_range classes, const at::Tensor& d_logits,
                      const at::Tensor& d_features, const parameter_choice& trained, at::Tensor into,
                      const gradient_sink& out) const;

  std::shared_ptr<const module_graph> graph_;
  module_shape shape_;
  std::vector<parameter> layout_;   // the graph's tensors that are part of the weights, in graph order, then the head
  std::size_t head_first_ = 0;      // index of the head's first parameter in layout_
  bool couples_batch_rows_ = false; // true: training updates running statistics, so a row's result depends on other
                                    // rows
};

} // namespace mneme

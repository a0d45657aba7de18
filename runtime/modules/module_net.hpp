/// module_net: a net from a file of another program, with a head added by the run.
#pragma once
#include "runtime/models/function.hpp"
#include "runtime/modules/module_graph.hpp"
#include "runtime/modules/row_form.hpp"
#include <stdexcept>
namespace mneme {

class module_memory;

/// Properties of the net other than its graph, found while loading it.
struct module_shape {
  std::string file{};                  ///< Its name, for errors.
  std::string digest{};                ///< That of the file, hex.
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row.
  row_form form = row_form::images;    ///< As forward() takes them.
  std::int64_t width = 0;              ///< D, numbers that forward() returns for a row.
  std::int64_t classes = 0;            ///< Those of the run; 0: there is no head.
  /// forward() returns scores of the classes; else it returns features, and the run adds a head.
  bool scores = false;
  head_kind head = head_kind::linear;
  bool trained = false;          ///< Its parameters train, but for those with requires_grad = False in the file.
  bool training = false;         ///< Passes of training are in training mode. @pre trained
  std::int64_t rows_at_once = 1; ///< Rows that forward() sees in one call; the result of a row does not depend on them.
  std::int64_t row_bytes = 0;    ///< Bytes that its operators make of one row.
};

/// Its weights are the parameters of the module under their own names, its float32 buffers and the head. Parameters
/// that the file has with requires_grad = False are held. Without module_shape::training the module stays in evaluation
/// mode while it is trained: running statistics keep the file's values, and nothing is dropped. With it, a pass of
/// training is one call with all rows of the step; running statistics move, and masks of dropout follow from the
/// model's stream. A batch norm is in training mode if a parameter of its layer trains or
/// parameter_choice::moves_statistics(), dropout if any parameter of the module trains. Gradients are LibTorch's
/// autograd's. Models of a fused group are computed one by one. Passes throw std::runtime_error with the file's name if
/// forward() fails, returns another shape than in its trial, or takes more memory than pass_bytes_max().
class module_net final : public user_module {
public:
  module_net(std::shared_ptr<const module_graph> graph, module_shape shape);

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return layout_; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return shape_.width; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return shape_.classes; }
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override;
  [[nodiscard]] bool mixes_rows() const noexcept override { return mixes_rows_; }
  [[nodiscard]] bool draws() const noexcept override { return shape_.training && graph_->draws() > 0; }
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;

  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;

  [[nodiscard]] std::shared_ptr<const model> with_frozen(const std::vector<bool>& chosen) const override;

  [[nodiscard]] std::array<std::int64_t, 3> input() const noexcept override { return shape_.input; }

  void put_own_values(at::Tensor& flat) const override;
  [[nodiscard]] std::vector<std::string> warnings() const override;

private:
  struct model_pass;
  void add_parameter(parameter entry);
  void add_head();
  void note_mixing();
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
  void back_model(const model_pass& passed, class_range classes, const at::Tensor& d_logits,
                  const at::Tensor& d_features, const parameter_choice& trained, at::Tensor into,
                  const gradient_sink& out) const;

  std::shared_ptr<const module_graph> graph_;
  module_shape shape_;
  std::vector<parameter> layout_; // tensors of the graph that are in it, in their order, then the head
  std::size_t head_first_ = 0;    // of the layout
  bool mixes_rows_ = false;       // a buffer moves that is not held
};

} // namespace mneme

/// function_net: a net written once, as a function of LibTorch's operators, whose gradients autograd takes.
#pragma once
#include "runtime/models/function.hpp"
#include <optional>
namespace mneme {

// Axes: K models, B rows of a step, P weights of a model, D features, C classes.

/// For nets that are no chain of layers. Models of a fused group are computed one by one, so a model's bits do not
/// depend on the others; of a pass that no backward pass follows, rows are shown in calls of one size, so that a row's
/// bits do not depend on how many come with it.
class function_net : public model {
public:
  [[nodiscard]] const std::vector<parameter>& layout() const noexcept final { return layout_; }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const final;
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const final;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const final;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const final;

protected:
  /// One model's pass.
  struct model_pass {
    /// Parameters in the order of the layout, with the shapes of files: of the head, rows of `classes` alone.
    std::span<const at::Tensor> values{};
    const at::Tensor& images;                ///< [B, C, H, W]
    class_range classes{};                   ///< None: the pass ends at the features.
    const training_mode* training = nullptr; ///< Null: evaluation mode.
    rng_key stream{};                        ///< Below it the pass draws; read in training by nets that draw.
    std::span<const std::string> maps{};     ///< Those that are wanted, among maps().
  };
  struct model_results {
    at::Tensor features{};          ///< [B, D]
    at::Tensor logits{};            ///< [B, classes], or undefined
    std::vector<at::Tensor> maps{}; ///< [B, C, height, width]: those that are wanted.
  };
  /// By operators that autograd follows to any order, in the type of the weights.
  [[nodiscard]] virtual model_results apply(const model_pass& pass) const = 0;
  /// Floats that a row needs until the backward pass, about.
  [[nodiscard]] virtual std::int64_t row_floats() const = 0;
  /// C, H, W of a row of its inputs.
  [[nodiscard]] virtual std::array<std::int64_t, 3> input() const = 0;

  /// Puts a parameter behind those that are there. @return its place in the layout
  std::size_t add_parameter(parameter entry);
  /// model::with_frozen() of this net itself, which is a copy. @pre no training has begun
  void hold(const std::vector<bool>& chosen) { hold_parameters(layout_, chosen); }

private:
  struct followed_pass;
  [[nodiscard]] std::vector<at::Tensor> values_of(const at::Tensor& weights, class_range classes) const;
  [[nodiscard]] rng_key stream_of(const training_mode* training, std::int64_t k) const;
  [[nodiscard]] model_results in_calls(const model_pass& pass) const;
  void back_model(const followed_pass& passed, class_range classes, const std::vector<at::Tensor>& slopes,
                  const parameter_choice& trained, const at::Tensor& into, const gradient_sink& out) const;

  std::vector<parameter> layout_;
};

} // namespace mneme

#include "runtime/models/function.hpp"
namespace mneme {
namespace {

/// A net without parameters and without a head, for methods that fit a linear readout. The features are the normalized
/// pixels.
class identity_model final : public model {
public:
  explicit identity_model(std::int64_t width) : width_(width) {}
  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return nothing_; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return width_; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return 0; }
  [[nodiscard]] std::string identity() const override { return "identity " + std::to_string(width_); }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override {
    return rows * width_ * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] bool depends_on_row_count(class_range) const noexcept override { return false; }
  [[nodiscard]] activations forward(const at::Tensor&, const at::Tensor& inputs, class_range, tape*,
                                    const training_mode*) const override {
    return {inputs.view({inputs.size(0), inputs.size(1), width_}), {}};
  }
  void backward(const at::Tensor&, tape&, class_range, const at::Tensor&, const at::Tensor&, const parameter_choice&,
                const gradient_sink&) const override {} // there are no parameters
  [[nodiscard]] function_results differentiable(const at::Tensor&, const at::Tensor& inputs, class_range,
                                                const function_mode&) const override {
    return {.features = inputs.flatten(2)};
  }

private:
  std::int64_t width_;
  std::vector<parameter> nothing_;
};

class identity_kind final : public model_kind {
public:
  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t) const override {
    return std::make_shared<identity_model>(shape[0] * shape[1] * shape[2]);
  }
};

const model_registration identity_line{
    {.name = "identity",
     .summary = "no parameters: the pixels are the features",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<identity_kind>(); }}};

} // namespace
} // namespace mneme

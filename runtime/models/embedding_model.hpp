/// embedding_model: an encoder and a classifier of its embeddings, as one net that can be split.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

class network_builder;

/// Sizes of the net. Encoder: convolutions of 5 x 5 with ReLU, each with a max-pool of 2 x 2 after it (images only),
/// linear layers with ReLU, then the embedding. Classifier: linear layers with ReLU, then the head.
struct embedding_shape {
  std::vector<std::int64_t> filters{32, 64};
  std::int64_t padding = 0;
  std::vector<std::int64_t> hidden{1000, 1000};
  std::int64_t embedding = 256; ///< D, the number of values of an embedding.
  std::vector<std::int64_t> classifier{1000, 1000};
  /// true: the encoder computes means and log standard deviations of a normal distribution, 2 D features. Training
  /// reads samples of this distribution, and evaluation reads the means (VEE). false: the encoder computes D numbers
  /// (EBR).
  bool normal = true;
  double low = -6.0, high = 3.0; ///< Bounds of the log standard deviations, if `normal`.
};

/// Weights: the encoder's, then the classifier's, with names such as "encoder.conv1.weight", "classifier.fc1.weight".
class embedding_model final : public model {
public:
  embedding_model(embedding_shape embedding, std::array<std::int64_t, 3> shape, std::int64_t classes);
  /// Returns why the net cannot be built for inputs of this shape; empty if it can be built.
  [[nodiscard]] static std::string shape_error(const embedding_shape& embedding, std::array<std::int64_t, 3> shape);

  [[nodiscard]] const embedding_shape& shape() const noexcept { return shape_; }
  /// The encoder without a head. Its features are the features of this net.
  [[nodiscard]] const model_ref& encoder() const noexcept { return encoder_; }
  /// The classifier, which reads rows of D numbers.
  [[nodiscard]] const model_ref& classifier() const noexcept { return classifier_; }

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override;
  [[nodiscard]] std::int64_t feature_width() const noexcept override;
  [[nodiscard]] std::int64_t classes() const noexcept override;
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override;
  [[nodiscard]] bool uses_random_numbers() const noexcept override { return shape_.normal; }
  [[nodiscard]] bool depends_on_row_count(class_range classes) const noexcept override;
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;
  [[nodiscard]] std::vector<std::string> maps() const override;

private:
  void add_encoder(network_builder& to, std::array<std::int64_t, 3> shape) const;
  void add_classifier(network_builder& to, std::int64_t classes) const;

  embedding_shape shape_;
  model_ref whole_, encoder_, classifier_;
};

} // namespace mneme

#include "runtime/models/embedding_model.hpp"
#include "runtime/models/image_layers.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

constexpr std::int64_t kernel_px = 5, window_px = 2;

/// True for rows of numbers, false for images.
bool is_flat(const std::array<std::int64_t, 3>& shape) { return shape[0] == 1 && shape[1] == 1; }

/// Side of an image in pixels after a convolution and a pooling; 0 if no pixel is left.
std::int64_t output_side(std::int64_t side, std::int64_t padding) {
  return std::max<std::int64_t>(side + 2 * padding - kernel_px + 1, 0) / window_px;
}

std::string dashed(const std::vector<std::int64_t>& widths) { return fmt::format("{}", fmt::join(widths, "-")); }

std::string identity_of(const embedding_shape& embedding, const std::array<std::int64_t, 3>& shape) {
  const auto convolutions =
      is_flat(shape) ? std::string{} : fmt::format(" conv {} padding {}", dashed(embedding.filters), embedding.padding);
  const auto kind =
      embedding.normal ? fmt::format("vee within {} and {}", embedding.low, embedding.high) : std::string("ebr");
  return fmt::format("{} {}x{}x{}{} hidden {} embedding {}", kind, shape[0], shape[1], shape[2], convolutions,
                     dashed(embedding.hidden), embedding.embedding);
}

} // namespace

embedding_model::embedding_model(embedding_shape embedding, std::array<std::int64_t, 3> shape, std::int64_t classes)
    : shape_(std::move(embedding)) {
  const auto encoder_name = identity_of(shape_, shape);
  const auto classifier_name = fmt::format("classifier {}-{}-{}", shape_.embedding, dashed(shape_.classifier), classes);

  network_builder whole(encoder_name + ", " + classifier_name, shape);
  add_encoder(whole, shape);
  whole.mark_features();
  if (shape_.normal)
    whole.add_sampling(shape_.low, shape_.high);
  add_classifier(whole, classes);
  whole_ = whole.build();

  network_builder encoder(encoder_name, shape);
  add_encoder(encoder, shape);
  encoder.end_headless();
  encoder_ = encoder.build();

  network_builder classifier(classifier_name, std::array<std::int64_t, 3>{1, 1, shape_.embedding});
  add_classifier(classifier, classes);
  classifier_ = classifier.build();
}

std::string embedding_model::shape_error(const embedding_shape& embedding, std::array<std::int64_t, 3> shape) {
  if (is_flat(shape))
    return {};
  auto height = shape[1], width = shape[2];
  for (std::size_t i = 0; i < embedding.filters.size(); ++i) {
    height = output_side(height, embedding.padding);
    width = output_side(width, embedding.padding);
  }
  if (height > 0 && width > 0)
    return {};
  return fmt::format("images of {} x {} pixels are too small for {} convolutions of {} x {} and their pools; try fewer "
                     "filters or a padding of 2",
                     shape[1], shape[2], embedding.filters.size(), kernel_px, kernel_px);
}

void embedding_model::add_encoder(network_builder& to, std::array<std::int64_t, 3> shape) const {
  for (std::size_t i = 0; i < shape_.filters.size() && !is_flat(shape); ++i) {
    add_convolution(
        to, fmt::format("encoder.conv{}", i + 1),
        {.filters = shape_.filters[i], .kernel = kernel_px, .padding = shape_.padding, .after = activation::relu});
    add_max_pool(to, window_px, window_px, 0);
    to.expose_map(fmt::format("encoder.conv{}", i + 1));
  }
  for (std::size_t i = 0; i < shape_.hidden.size(); ++i) {
    const auto name = fmt::format("encoder.fc{}", i + 1);
    to.add_linear(name, shape_.hidden[i], activation::relu);
    to.expose_map(name);
  }
  if (shape_.normal)
    to.add_normal("encoder.mu", "encoder.log_sigma", shape_.embedding);
  else
    to.add_linear("encoder.embedding", shape_.embedding, activation::none);
}

void embedding_model::add_classifier(network_builder& to, std::int64_t classes) const {
  for (std::size_t i = 0; i < shape_.classifier.size(); ++i)
    to.add_linear(fmt::format("classifier.fc{}", i + 1), shape_.classifier[i], activation::relu);
  to.add_head(fmt::format("classifier.fc{}", shape_.classifier.size() + 1), classes);
}

const std::vector<parameter>& embedding_model::layout() const noexcept { return whole_->layout(); }
std::int64_t embedding_model::feature_width() const noexcept { return whole_->feature_width(); }
std::int64_t embedding_model::classes() const noexcept { return whole_->classes(); }
std::string embedding_model::identity() const { return whole_->identity(); }
bool embedding_model::depends_on_row_count(class_range classes) const noexcept {
  return whole_->depends_on_row_count(classes);
}
std::int64_t embedding_model::working_set(std::int64_t rows) const { return whole_->working_set(rows); }

activations embedding_model::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                     tape* keep, const training_mode* training) const {
  return whole_->forward(weights, inputs, classes, keep, training);
}

void embedding_model::backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                               const at::Tensor& d_features, const parameter_choice& trained,
                               const gradient_sink& out) const {
  whole_->backward(weights, kept, classes, d_logits, d_features, trained, out);
}

function_results embedding_model::differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                 class_range classes, const function_mode& mode) const {
  return whole_->differentiable(weights, inputs, classes, mode);
}

std::vector<std::string> embedding_model::maps() const { return whole_->maps(); }

} // namespace mneme

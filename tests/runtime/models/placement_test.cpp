// A client's bits must not depend on the alignment of its operands within a cache line or on other clients of its
// batch. This tests every layer, forward and backward. tests/tools/placement_test.py repeats it with settings that
// change the kernels.
#include "runtime/models/activation_layer.hpp"
#include "runtime/models/attention_layer.hpp"
#include "runtime/models/convolution_layer.hpp"
#include "runtime/models/cosine_head.hpp"
#include "runtime/models/depthwise_layer.hpp"
#include "runtime/models/dropout.hpp"
#include "runtime/models/gelu_layer.hpp"
#include "runtime/models/layout_layers.hpp"
#include "runtime/models/linear_layer.hpp"
#include "runtime/models/lstm_layer.hpp"
#include "runtime/models/network.hpp"
#include "runtime/models/normalization.hpp"
#include "runtime/models/patch_embedding.hpp"
#include "runtime/models/pooling.hpp"
#include "runtime/models/proxy_head.hpp"
#include "runtime/models/sampling_layer.hpp"
#include "runtime/models/token_embedding.hpp"
#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/models/tokens_norm_layer.hpp"
#include "runtime/models/transposed_convolution.hpp"
#include "runtime/models/upsampling.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/layer_functions.hpp"
#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

constexpr std::int64_t line_floats = 16;
constexpr std::int64_t fused_clients_max = 7;
constexpr class_range classes{2, 9};

/// Memory of these sizes that starts `place` floats after a cache line boundary.
at::Tensor memory_at(at::IntArrayRef sizes, std::int64_t place) {
  const auto floats = c10::multiply_integers(sizes);
  const auto memory = at::empty({floats + 2 * line_floats});
  const auto beyond = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr()) / sizeof(float) % line_floats;
  const auto first = static_cast<std::int64_t>((line_floats - beyond) % line_floats) + place;
  return memory.narrow(0, first, floats).view(sizes);
}

/// Weights or gradients [K, P] as in a fused group, with a row stride of whole cache lines.
at::Tensor rows_at(const at::Tensor& values, std::int64_t place) {
  const auto pitch = (values.size(1) + line_floats - 1) / line_floats * line_floats;
  return memory_at({values.size(0), pitch}, place).narrow(1, 0, values.size(1)).copy_(values);
}

/// Offsets of a layer's operands, in floats after a cache line boundary.
struct places {
  std::int64_t weights = 0, in = 0, out = 0, d_out = 0, d_in = 0, gradients = 0;
};

struct results {
  at::Tensor weights, out, d_in, gradients; // [K, ..]
};

/// First layer of a net: returns its input with the given alignment and keeps the gradient of that output.
class front_layer final : public kernel_layer {
public:
  front_layer(std::int64_t width, std::int64_t place, at::Tensor& d_in) : width_(width), place_(place), d_in_(d_in) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  void forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor&) const override {
    out = memory_at(in.sizes(), place_).copy_(in);
  }
  void backward(const layer_pass&, const backward_data& data, const gradient_sink&) const override {
    d_in_.copy_(data.d_out);
  }
  [[nodiscard]] at::Tensor function(const function_pass&, const at::Tensor& in) const override { return in; }

private:
  std::int64_t width_, place_;
  at::Tensor& d_in_;
};

/// Offsets of a layer's parameters in the weights.
struct span_of_weights {
  std::int64_t offset = 0, size = 0;
  bool head = false;
};

/// A layer and random operands for models_max models.
class subject {
public:
  subject(std::string name, std::shared_ptr<kernel_layer> made, std::int64_t width_in, std::int64_t size,
          std::int64_t rows = 3, bool gradient_wanted = true)
      : subject(gradient_wanted, std::move(name), made, width_in, size, rows) {
    kernels_ = std::move(made);
  }
  /// @param parameters offsets, ascending
  subject(std::string name, std::shared_ptr<function_layer> made, std::int64_t width_in, std::int64_t size,
          std::vector<span_of_weights> parameters, std::int64_t rows = 3, bool gradient_wanted = true)
      : subject(gradient_wanted, std::move(name), std::move(made), width_in, size, rows) {
    parameters_ = std::move(parameters);
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Makes its rows tokens below `vocabulary`.
  void read_tokens(std::int64_t vocabulary) { in_ = in_.abs().mul(10).floor().remainder(vocabulary); }

  /// Forward and backward pass of the models first to first + count - 1.
  [[nodiscard]] results pass(std::int64_t first, std::int64_t count, const places& at, bool add) {
    const auto placed = [&](const at::Tensor& values, std::int64_t place) {
      const auto some = values.narrow(0, first, count);
      return memory_at(some.sizes(), place).copy_(some);
    };
    const auto in = placed(in_, at.in);
    results made{.weights = rows_at(weights_.narrow(0, first, count), at.weights),
                 .out = memory_at(d_out_.narrow(0, 0, count).sizes(), at.out),
                 .d_in = placed(in_, at.d_in),
                 .gradients = rows_at(weights_.narrow(0, first, count), at.gradients)};
    auto d_out = placed(d_out_, at.d_out);
    const training_mode training{std::span(streams_).subspan(static_cast<std::size_t>(first))};
    const training_mode own{training.streams.first(static_cast<std::size_t>(count))};
    const gradient_sink sink{made.gradients, add ? -0.25F : 1.0F, add};
    if (!kernels_) {
      run_as_net(made, in, d_out, at.in, own, sink);
      return made;
    }
    const layer_pass pass{made.weights, count, rows_, classes, &own, &memory_};
    at::Tensor kept;
    kernels_->forward(pass, in, made.out, kept);
    kernels_->backward(pass,
                       {.in = in,
                        .out = made.out,
                        .kept = kept,
                        .d_out = d_out,
                        .d_in = gradient_wanted_ ? &made.d_in : nullptr,
                        .add = add && kernels_->adds()},
                       sink);
    return made;
  }

  /// Compares the first model's pass with autograd's gradients of the layer alone; only for kernels.
  [[nodiscard]] bool has_gradients_of_function(const results& alone) const {
    if (kernels_)
      return true;
    std::vector<std::int64_t> offsets; // of parameters, and of the gaps between them
    std::int64_t end = 0;
    for (const auto& [offset, size, head] : parameters_) {
      if (offset > end)
        offsets.push_back(end);
      offsets.push_back(offset);
      end = offset + size;
    }
    if (end < weights_.size(1))
      offsets.push_back(end);
    const training_mode training{std::span(streams_).first(1)};
    const auto theirs = run_function(*layer_, weights_.narrow(0, 0, 1), in_.narrow(0, 0, 1), d_out_.narrow(0, 0, 1),
                                     classes, &training, nullptr, offsets);
    auto untouched = theirs.d_weights.isnan();
    if (layer_->width({0, 1}) != layer_->width({0, 2})) // a head: it writes only rows of its classes
      untouched = untouched.logical_or(theirs.d_weights == 0);
    const auto near = [](const at::Tensor& a, const at::Tensor& b) {
      return largest_difference(a, b.contiguous()) < 1e-4;
    };
    return near(alone.out, theirs.out) && (!gradient_wanted_ || near(alone.d_in, theirs.d_in)) &&
           near(alone.gradients.contiguous(), at::where(untouched, weights_.narrow(0, 0, 1), theirs.d_weights));
  }

private:
  subject(bool gradient_wanted, std::string name, std::shared_ptr<layer> made, std::int64_t width_in, std::int64_t size,
          std::int64_t rows)
      : name_(std::move(name)), layer_(std::move(made)), rows_(rows), gradient_wanted_(gradient_wanted),
        weights_(drawn({fused_clients_max, size}, 1).abs_().add_(0.1)), // running variances are positive
        in_(drawn({fused_clients_max, rows, width_in}, 2)),
        d_out_(drawn({fused_clients_max, rows, layer_->width(classes)}, 3)) {
    for (std::uint32_t k = 0; k < fused_clients_max; ++k)
      streams_.push_back({.seed = 5, .client = {k}});
  }

  /// Runs a function layer in a net: after a layer that needs the gradient of its output, or as the first layer.
  void run_as_net(results& made, const at::Tensor& in, const at::Tensor& d_out, std::int64_t place,
                  const training_mode& mode, const gradient_sink& sink) const {
    network_parts parts{.identity = "one layer", .shapes = {{1, 1, in_.size(2)}}};
    parts.layout.push_back({.name = "front", .shape = {0}, .offset = 0, .size = 0});
    for (const auto& [offset, size, head] : parameters_)
      parts.layout.push_back({.name = "part",
                              .shape = {head ? 11 : size, head ? size / 11 : 1},
                              .offset = offset,
                              .size = size,
                              .head = head});
    parts.layout.push_back({.name = "rest", .shape = {0}, .offset = weights_.size(1), .size = 0});
    if (gradient_wanted_) {
      parts.nodes.push_back({.operation = std::make_shared<front_layer>(in_.size(2), place, made.d_in),
                             .learns = true,
                             .last_parameter = 1});
      parts.shapes.push_back({1, 1, in_.size(2)});
    }
    const bool is_head = layer_->width({0, 1}) != layer_->width({0, 2});
    parts.nodes.push_back({.operation = layer_,
                           .from = parts.nodes.size(),
                           .learns = true,
                           .first_parameter = 1,
                           .last_parameter = 1 + parameters_.size()});
    parts.shapes.push_back({1, 1, layer_->width(classes)});
    for (std::size_t i = 0; i <= parts.nodes.size(); ++i)
      parts.last_reader.push_back(i < parts.nodes.size() ? i : i - 1);
    parts.features = is_head ? parts.nodes.size() - 1 : parts.nodes.size();
    parts.classes = is_head ? 11 : 0;
    parts.feature_width = parts.shapes[parts.features].floats();
    const network net(std::move(parts));
    tape kept;
    const auto shown = net.forward(made.weights, in, is_head ? classes : class_range{}, &kept, &mode);
    made.out.copy_(is_head ? shown.logits : shown.features);
    net.backward(made.weights, kept, is_head ? classes : class_range{}, is_head ? d_out : at::Tensor{},
                 is_head ? at::Tensor{} : d_out, {}, sink);
  }

  std::string name_;
  std::shared_ptr<layer> layer_;
  std::shared_ptr<kernel_layer> kernels_{}; // null: the layer is a function
  std::vector<span_of_weights> parameters_{};
  std::int64_t rows_;
  bool gradient_wanted_;
  at::Tensor weights_, in_, d_out_;
  std::vector<rng_key> streams_;
  kernels::scratch memory_;
};

/// True if model k of `group` has the bits of the only model of `alone`.
bool is_alike(const results& group, std::int64_t k, const results& alone) {
  const auto alike = [&](at::Tensor results::*part) { return same_bits((group.*part)[k], (alone.*part)[0]); };
  return alike(&results::weights) && alike(&results::out) && alike(&results::d_in) && alike(&results::gradients);
}

const std::vector<span_of_weights> no_parameters;

std::vector<subject> products() {
  std::vector<subject> made;
  for (const std::int64_t in : {1, 33, 64, 300})
    made.emplace_back("linear " + std::to_string(in),
                      std::make_shared<linear_layer>(dense_layer{
                          .in = in, .out = 10, .weight_offset = 4, .bias_offset = 3010, .after = activation::relu}),
                      in, 3100);
  for (const std::int64_t rows : {1, 3}) {
    made.emplace_back("cosine head", std::make_shared<cosine_head>(cosine_head::shape{21, 5, 3}), 21, 300,
                      std::vector<span_of_weights>{{3, 1}, {5, 231, true}}, rows);
    made.emplace_back("proxy head", std::make_shared<proxy_head>(proxy_head_shape{21, 3, 5, 3}), 21, 800,
                      std::vector<span_of_weights>{{3, 1}, {5, 693, true}}, rows);
  }
  // A single token is the class token; 9 x 48 x 24 is the shape of an adapter.
  for (const auto& [tokens, in, out, rows] : {std::array<std::int64_t, 4>{1, 24, 40, 1},
                                              {1, 40, 24, 1},
                                              {9, 48, 24, 1},
                                              {5, 24, 72, 2},
                                              {10, 33, 17, 3},
                                              {10, 24, 4, 2},
                                              {17, 64, 192, 2},
                                              {1, 32, 64, 1}})
    for (const double scale : {1.0, 0.1})
      made.emplace_back("linear of tokens " + std::to_string(rows) + " x " + std::to_string(tokens) + " x " +
                            std::to_string(in) + " to " + std::to_string(out),
                        std::make_shared<tokens_linear_layer>(
                            tokens_linear_layer::shape{.tokens = tokens,
                                                       .in = in,
                                                       .out = out,
                                                       .weight_offset = 3,
                                                       .bias_offset = 5 + in * out,
                                                       .scale = scale,
                                                       .after = scale == 1.0 ? activation::none : activation::relu}),
                        tokens * in, in * out + out + 10, rows);
  for (const auto& [queries, rows] : {std::pair<std::int64_t, std::int64_t>{10, 3}, {1, 1}})
    made.emplace_back("attention of " + std::to_string(queries),
                      std::make_shared<attention_layer>(
                          attention_layer::shape{.tokens = 10, .queries = queries, .heads = 3, .channels = 24}),
                      10 * 72, 1, rows);
  for (const std::int64_t rows : {1, 2})
    made.emplace_back("patches of " + std::to_string(rows),
                      std::make_shared<patch_embedding_layer>(patch_embedding_layer::shape{.in = {8, 4, 3},
                                                                                           .patch = 4,
                                                                                           .channels = 20,
                                                                                           .class_offset = 1000,
                                                                                           .position_offset = 1030,
                                                                                           .weight_offset = 3,
                                                                                           .bias_offset = 970}),
                      96, 1100, std::vector<span_of_weights>{{3, 960}, {970, 20}, {1000, 20}, {1030, 60}}, rows, false);
  return made;
}

std::vector<subject> convolutions() {
  std::vector<subject> made;
  for (const auto& [channels, filters, kernel, stride] :
       {std::array<std::int64_t, 4>{3, 5, 3, 1}, {17, 16, 5, 2}, {1, 6, 5, 1}, {32, 32, 3, 1}, {16, 33, 1, 2}})
    made.emplace_back("convolution " + std::to_string(channels) + " to " + std::to_string(filters),
                      std::make_shared<convolution_layer>(convolution_layer::shape{.in = {9, 11, channels},
                                                                                   .filters = filters,
                                                                                   .kernel = kernel,
                                                                                   .stride = stride,
                                                                                   .padding = kernel / 2,
                                                                                   .weight_offset = 7,
                                                                                   .bias_offset = 1,
                                                                                   .after = activation::relu}),
                      9 * 11 * channels, kernel * kernel * channels * filters + 50);
  for (const auto& [channels, filters, kernel, stride] :
       {std::array<std::int64_t, 4>{3, 5, 3, 1}, {17, 16, 4, 2}, {32, 1, 4, 2}})
    made.emplace_back(
        "transposed convolution " + std::to_string(channels) + " to " + std::to_string(filters),
        std::make_shared<transposed_convolution_layer>(transposed_convolution_layer::shape{.in = {5, 3, channels},
                                                                                           .filters = filters,
                                                                                           .kernel = kernel,
                                                                                           .stride = stride,
                                                                                           .padding = 1,
                                                                                           .weight_offset = 37,
                                                                                           .bias_offset = 1,
                                                                                           .after = activation::relu}),
        15 * channels, kernel * kernel * channels * filters + 50,
        std::vector<span_of_weights>{{1, filters}, {37, kernel * kernel * channels * filters}});
  for (const auto& [channels, kernel, stride] : {std::array<std::int64_t, 3>{5, 3, 1}, {16, 5, 2}})
    made.emplace_back("depthwise " + std::to_string(channels),
                      std::make_shared<depthwise_layer>(depthwise_layer::shape{
                          .in = {9, 11, channels}, .kernel = kernel, .stride = stride, .weight_offset = 7}),
                      99 * channels, kernel * kernel * channels + 20,
                      std::vector<span_of_weights>{{7, kernel * kernel * channels}});
  return made;
}

std::vector<subject> others() {
  std::vector<subject> made;
  const image_shape images{5, 3, 7};
  for (const std::int64_t groups : {0, 7}) {
    auto layer = std::make_shared<normalization_layer>(
        normalization_layer::shape{.in = images, .groups = groups, .weight_offset = 1, .bias_offset = 9});
    layer->place_statistics(17, 25);
    made.emplace_back("normalisation in groups " + std::to_string(groups), std::move(layer), images.floats(), 40);
  }
  made.emplace_back("maxima", std::make_shared<max_pool_layer>(max_pool_layer::shape{images, 3, 2, 1}), images.floats(),
                    1);
  made.emplace_back("means", std::make_shared<mean_pool_layer>(images), images.floats(), 1);
  made.emplace_back("dropout", std::make_shared<dropout_layer>(21, 0, 0.25), 21, 1);
  made.emplace_back("samples", std::make_shared<sampling_layer>(sampling_layer::shape{.width = 21}), 42, 1,
                    no_parameters);
  made.emplace_back("channels last", std::make_shared<channels_last_layer>(images), images.floats(), 1);
  for (const std::int64_t first : {0, 1})
    made.emplace_back("subsampling", std::make_shared<subsampling_layer>(images, 2, 9, first), images.floats(), 1);
  made.emplace_back("resizing", std::make_shared<resize_layer>(images, 8, 4), images.floats(), 1, no_parameters);
  for (const auto kind : {upsampling::nearest, upsampling::bilinear})
    made.emplace_back("upsampling", std::make_shared<upsampling_layer>(images, 10, 7, kind), images.floats(), 1,
                      no_parameters);
  made.emplace_back("normalised tokens",
                    std::make_shared<tokens_norm_layer>(
                        tokens_norm_layer::shape{.tokens = 5, .channels = 21, .weight_offset = 1, .bias_offset = 30}),
                    105, 60);
  made.emplace_back("gelu", std::make_shared<gelu_layer>(77), 77, 1);
  for (const auto kind : {activation::leaky, activation::sigmoid, activation::tanh, activation::silu})
    made.emplace_back("activation " + std::to_string(static_cast<int>(kind)),
                      std::make_shared<activation_layer>(77, kind, 0.01), 77, 1, no_parameters);
  made.emplace_back("relu6", std::make_shared<relu6_layer>(77), 77, 1, no_parameters);
  made.emplace_back("a token", std::make_shared<chosen_token_layer>(21, 2), 105, 1);
  made.emplace_back("words",
                    std::make_shared<token_embedding_layer>(token_embedding_layer::shape{.tokens = 5,
                                                                                         .vocabulary = 11,
                                                                                         .channels = 21,
                                                                                         .positions = 6,
                                                                                         .types = 2,
                                                                                         .weight_offset = 3,
                                                                                         .position_offset = 240,
                                                                                         .type_offset = 370}),
                    5, 420, 3, false);
  made.back().read_tokens(11);
  for (const std::int64_t hidden : {5, 16})
    made.emplace_back("memory of " + std::to_string(hidden),
                      std::make_shared<lstm_layer>(lstm_layer::shape{.tokens = 5,
                                                                     .in = 21,
                                                                     .hidden = hidden,
                                                                     .input_weight_offset = 3,
                                                                     .hidden_weight_offset = 1400,
                                                                     .input_bias_offset = 2500,
                                                                     .hidden_bias_offset = 2601}),
                      105, 2700);
  return made;
}

void check_all(std::vector<subject> subjects) {
  at::set_num_threads(1);
  for (auto& tried : subjects)
    for (const bool add : {false, true}) {
      INFO(tried.name() << ", adding " << add);
      std::vector<results> alone;
      for (std::int64_t k = 0; k < fused_clients_max; ++k)
        alone.push_back(tried.pass(k, 1, {}, add));

      CHECK((add || tried.has_gradients_of_function(alone[0])));
      for (std::int64_t count = 2; count <= fused_clients_max; ++count) {
        const auto group = tried.pass(0, count, {}, add);
        for (std::int64_t k = 0; k < count; ++k) {
          INFO("model " << k << " of " << count);
          CHECK(is_alike(group, k, alone[static_cast<std::size_t>(k)]));
        }
      }

      for (const std::int64_t place : {1, 2, 4, 7, 8, 15}) // of 16 floats in a cache line
        for (auto operand :
             {&places::weights, &places::in, &places::out, &places::d_out, &places::d_in, &places::gradients}) {
          places moved;
          moved.*operand = place;
          INFO("weights at " << moved.weights << ", in at " << moved.in << ", out at " << moved.out
                             << ", its gradient at " << moved.d_out << ", that of in at " << moved.d_in
                             << ", gradients at " << moved.gradients);
          CHECK(is_alike(tried.pass(0, 1, moved, add), 0, alone[0]));
        }
    }
}

} // namespace

TEST_CASE("product layers have the same bits for any alignment and batch", "[placement]") { check_all(products()); }

TEST_CASE("convolution layers have the same bits for any alignment and batch", "[placement]") {
  check_all(convolutions());
}

TEST_CASE("all other layers have the same bits for any alignment and batch", "[placement]") { check_all(others()); }

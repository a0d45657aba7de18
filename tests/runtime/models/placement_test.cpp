// A client's bits must depend neither on where its operands begin within a cache line nor on who shares its batch:
// every layer, forward and backward. tests/tools/placement_test.py runs this again under settings that change the
// kernels.
#include "runtime/models/activation_layer.hpp"
#include "runtime/models/attention_layer.hpp"
#include "runtime/models/convolution_layer.hpp"
#include "runtime/models/cosine_head.hpp"
#include "runtime/models/dropout.hpp"
#include "runtime/models/gelu_layer.hpp"
#include "runtime/models/linear_layer.hpp"
#include "runtime/models/lstm_layer.hpp"
#include "runtime/models/normalisation.hpp"
#include "runtime/models/patch_embedding.hpp"
#include "runtime/models/pooling.hpp"
#include "runtime/models/sampling_layer.hpp"
#include "runtime/models/shortcut_layers.hpp"
#include "runtime/models/token_embedding.hpp"
#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/models/tokens_norm_layer.hpp"
#include "runtime/models/transposed_convolution.hpp"
#include "runtime/models/upsampling.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one wins

#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

constexpr std::int64_t line_floats = 16;
constexpr std::int64_t models_max = 7;
constexpr class_range classes{2, 9};

/// Memory of these sizes that begins `place` floats behind the beginning of a cache line.
at::Tensor memory_at(at::IntArrayRef sizes, std::int64_t place) {
  const auto floats = c10::multiply_integers(sizes);
  const auto memory = at::empty({floats + 2 * line_floats});
  const auto beyond = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr()) / sizeof(float) % line_floats;
  const auto first = static_cast<std::int64_t>((line_floats - beyond) % line_floats) + place;
  return memory.narrow(0, first, floats).view(sizes);
}

/// Weights or gradients [K, P] as a fused group holds them: rows lie whole lines apart.
at::Tensor rows_at(const at::Tensor& values, std::int64_t place) {
  const auto pitch = (values.size(1) + line_floats - 1) / line_floats * line_floats;
  return memory_at({values.size(0), pitch}, place).narrow(1, 0, values.size(1)).copy_(values);
}

/// What a layer reads and writes, in floats behind a line.
struct places {
  std::int64_t weights = 0, in = 0, out = 0, d_out = 0, d_in = 0, gradients = 0;
};

struct results {
  at::Tensor weights, out, d_in, gradients; // [K, ..]
};

/// A layer of some shape, and models_max models' drawn operands for it.
class subject {
public:
  subject(std::string name, std::unique_ptr<layer> made, std::int64_t width_in, std::int64_t size,
          std::int64_t rows = 3, bool gradient_wanted = true)
      : name_(std::move(name)), layer_(std::move(made)), rows_(rows), gradient_wanted_(gradient_wanted),
        weights_(drawn({models_max, size}, 1).abs_().add_(0.1)), // running variances are positive
        in_(drawn({models_max, rows, width_in}, 2)), d_out_(drawn({models_max, rows, layer_->width(classes)}, 3)) {
    for (std::uint32_t k = 0; k < models_max; ++k)
      streams_.push_back({.seed = 5, .client = {k}});
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Its rows are tokens below `vocabulary`.
  void read_tokens(std::int64_t vocabulary) { in_ = in_.abs().mul(10).floor().remainder(vocabulary); }

  /// Models first .. first + count - 1, forward and backward.
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
    const layer_pass pass{made.weights, count, rows_, classes, &own, &memory_};
    at::Tensor kept;
    layer_->forward(pass, in, made.out, kept);
    layer_->backward(pass,
                     {.in = in,
                      .out = made.out,
                      .kept = kept,
                      .d_out = d_out,
                      .d_in = gradient_wanted_ ? &made.d_in : nullptr,
                      .add = add && layer_->adds()},
                     {made.gradients, add ? -0.25F : 1.0F, add});
    return made;
  }

private:
  std::string name_;
  std::unique_ptr<layer> layer_;
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

std::vector<subject> products() {
  std::vector<subject> made;
  for (const std::int64_t in : {1, 33, 64, 300})
    made.emplace_back("linear " + std::to_string(in),
                      std::make_unique<linear_layer>(dense_layer{
                          .in = in, .out = 10, .weight_offset = 4, .bias_offset = 3010, .after = activation::relu}),
                      in, 3100);
  made.emplace_back("cosine head", std::make_unique<cosine_head>(cosine_head::shape{21, 5, 3}), 21, 300);
  // One row of one token is what stands behind the class token; 9 x 48 x 24 is an adapter's.
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
                        std::make_unique<tokens_linear_layer>(
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
                      std::make_unique<attention_layer>(
                          attention_layer::shape{.tokens = 10, .queries = queries, .heads = 3, .channels = 24}),
                      10 * 72, 1, rows);
  for (const std::int64_t rows : {1, 2})
    made.emplace_back("patches of " + std::to_string(rows),
                      std::make_unique<patch_embedding_layer>(patch_embedding_layer::shape{.in = {8, 4, 3},
                                                                                           .patch = 4,
                                                                                           .channels = 20,
                                                                                           .class_offset = 1000,
                                                                                           .position_offset = 1030,
                                                                                           .weight_offset = 3,
                                                                                           .bias_offset = 970}),
                      96, 1100, rows, false);
  return made;
}

std::vector<subject> convolutions() {
  std::vector<subject> made;
  for (const auto& [channels, filters, kernel, stride] :
       {std::array<std::int64_t, 4>{3, 5, 3, 1}, {17, 16, 5, 2}, {1, 6, 5, 1}, {32, 32, 3, 1}, {16, 33, 1, 2}})
    made.emplace_back("convolution " + std::to_string(channels) + " to " + std::to_string(filters),
                      std::make_unique<convolution_layer>(convolution_layer::shape{.in = {9, 11, channels},
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
        std::make_unique<transposed_convolution_layer>(transposed_convolution_layer::shape{.in = {5, 3, channels},
                                                                                           .filters = filters,
                                                                                           .kernel = kernel,
                                                                                           .stride = stride,
                                                                                           .padding = 1,
                                                                                           .weight_offset = 37,
                                                                                           .bias_offset = 1,
                                                                                           .after = activation::relu}),
        15 * channels, kernel * kernel * channels * filters + 50);
  return made;
}

std::vector<subject> others() {
  std::vector<subject> made;
  const image_shape images{5, 3, 7};
  for (const std::int64_t groups : {0, 7}) {
    auto layer = std::make_unique<normalisation_layer>(
        normalisation_layer::shape{.in = images, .groups = groups, .weight_offset = 1, .bias_offset = 9});
    layer->place_statistics(17, 25);
    made.emplace_back("normalisation in groups " + std::to_string(groups), std::move(layer), images.floats(), 40);
  }
  made.emplace_back("maxima", std::make_unique<max_pool_layer>(max_pool_layer::shape{images, 3, 2, 1}), images.floats(),
                    1);
  made.emplace_back("means", std::make_unique<mean_pool_layer>(images), images.floats(), 1);
  made.emplace_back("dropout", std::make_unique<dropout_layer>(21, 0, 0.25), 21, 1);
  made.emplace_back("samples", std::make_unique<sampling_layer>(sampling_layer::shape{.width = 21}), 42, 1);
  made.emplace_back("channels last", std::make_unique<channels_last_layer>(images), images.floats(), 1);
  for (const std::int64_t first : {0, 1})
    made.emplace_back("subsampling", std::make_unique<subsampling_layer>(images, 2, 9, first), images.floats(), 1);
  made.emplace_back("resizing", std::make_unique<resize_layer>(images, 8, 4), images.floats(), 1, 3, false);
  for (const auto kind : {upsampling::nearest, upsampling::bilinear})
    made.emplace_back("upsampling", std::make_unique<upsampling_layer>(images, 10, 7, kind), images.floats(), 1);
  made.emplace_back("normalised tokens",
                    std::make_unique<tokens_norm_layer>(
                        tokens_norm_layer::shape{.tokens = 5, .channels = 21, .weight_offset = 1, .bias_offset = 30}),
                    105, 60);
  made.emplace_back("gelu", std::make_unique<gelu_layer>(77), 77, 1);
  for (const auto kind : {activation::leaky, activation::sigmoid, activation::tanh, activation::silu})
    made.emplace_back("activation " + std::to_string(static_cast<int>(kind)),
                      std::make_unique<activation_layer>(77, kind, 0.01), 77, 1);
  made.emplace_back("a token", std::make_unique<chosen_token_layer>(21, 2), 105, 1);
  made.emplace_back("words",
                    std::make_unique<token_embedding_layer>(token_embedding_layer::shape{.tokens = 5,
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
                      std::make_unique<lstm_layer>(lstm_layer::shape{.tokens = 5,
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
      for (std::int64_t k = 0; k < models_max; ++k)
        alone.push_back(tried.pass(k, 1, {}, add));

      for (std::int64_t count = 2; count <= models_max; ++count) {
        const auto group = tried.pass(0, count, {}, add);
        for (std::int64_t k = 0; k < count; ++k) {
          INFO("model " << k << " of " << count);
          CHECK(is_alike(group, k, alone[static_cast<std::size_t>(k)]));
        }
      }

      for (std::int64_t place = 1; place < line_floats; ++place)
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

TEST_CASE("products have their bits wherever operands begin and whoever shares the batch", "[placement]") {
  check_all(products());
}

TEST_CASE("convolutions have their bits wherever operands begin and whoever shares the batch", "[placement]") {
  check_all(convolutions());
}

TEST_CASE("all other layers have their bits wherever operands begin and whoever shares the batch", "[placement]") {
  check_all(others());
}

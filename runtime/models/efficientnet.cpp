// EfficientNet-Lite0 (Tan and Le 2019; the Lite variants of 2020 have ReLU6 and no squeeze-and-excitation). As in
// TensorFlow, a convolution that halves an even image pads one pixel more after the image than before it. Weights:
// tools/fetch_weights.
#include "runtime/models/image_layers.hpp"
#include "runtime/options/keys.hpp"
#include <array>
#include <fmt/format.h>
namespace mneme {
namespace {

/// A sequence of `blocks` blocks. Each block expands the channels, filters each channel, and projects the result to
/// `channels` channels.
struct stage {
  std::int64_t blocks, kernel, stride, widened, channels; // `widened` is the expansion factor
};
constexpr std::array stages{stage{1, 3, 1, 1, 16}, stage{2, 3, 2, 6, 24},  stage{2, 5, 2, 6, 40},
                            stage{3, 3, 2, 6, 80}, stage{3, 5, 1, 6, 112}, stage{4, 5, 2, 6, 192},
                            stage{1, 3, 1, 6, 320}};
constexpr std::int64_t stem_channels = 32, feature_channels = 1280, halvings = 5;

class lite_builder {
public:
  explicit lite_builder(network_builder& net) : net_(net) {}

  void add_all(std::int64_t classes, const head_shape& head) {
    // A 3 x 3 filter with padding after the image equals a 4 x 4 filter with padding on all sides and zeros in its
    // first row and column. The weight file contains the latter.
    add_convolution("conv_stem", {.filters = stem_channels, .kernel = 4, .stride = 2, .padding = 1});
    add_normalization("bn0", true);
    std::int64_t number = 0;
    for (const auto& [blocks, kernel, stride, widened, channels] : stages)
      for (std::int64_t i = 0; i < blocks; ++i)
        add_block(fmt::format("blocks.{}", number++), kernel, i == 0 ? stride : 1, widened, channels);
    add_convolution("conv_head", {.filters = feature_channels, .kernel = 1});
    add_normalization("bn1", true);
    add_mean_pool(net_);
    net_.add_head("fc", classes, head);
  }

private:
  void add_block(const std::string& name, std::int64_t kernel, std::int64_t stride, std::int64_t widened,
                 std::int64_t channels) {
    const auto start = net_.cursor();
    const auto before = net_.shape_here().channels;
    if (widened > 1) {
      add_convolution(name + ".expand_conv", {.filters = widened * before, .kernel = 1});
      add_normalization(name + ".bn0", true);
    }
    add_depthwise(net_, name + ".depthwise_conv", kernel, stride);
    add_normalization(name + ".bn1", true);
    add_convolution(name + ".project_conv", {.filters = channels, .kernel = 1});
    add_normalization(name + ".bn2", false);
    if (stride == 1 && channels == before)
      net_.add_sum(start, activation::none);
    net_.expose_map(name);
  }

  void add_convolution(const std::string& name, convolution_options how) {
    how.bias = false;
    how.he_normal = true;
    mneme::add_convolution(net_, name, how);
  }

  void add_normalization(const std::string& name, bool active) {
    net_.add_normalization(name, 0, activation::none);
    if (active)
      add_relu6(net_);
  }

  network_builder& net_;
};

class efficientnet_lite_kind final : public model_kind {
public:
  void keys(key_table& table) override { head_keys(table); }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto [channels, height, width] = shape;
    constexpr auto multiple = std::int64_t{1} << halvings;
    if (height % multiple != 0 || width % multiple != 0)
      return tl::unexpected(fmt::format("efficientnet-lite0 halves images {} times, but {} x {} pixels cannot be "
                                        "halved so often; expected multiples of {}, as data.resize = 224 gives",
                                        halvings, height, width, multiple));
    network_builder net(fmt::format("efficientnet-lite0 {}x{}x{}-{}", channels, height, width, classes), shape);
    lite_builder(net).add_all(classes, head());
    return net.build();
  }
};

const model_registration line{
    {.name = "efficientnet-lite0",
     .summary = "EfficientNet-Lite0 (Tan and Le 2019): 3.4 million weights, 1,280 features; tools/fetch_weights "
                "downloads those of ImageNet",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<efficientnet_lite_kind>(); }}};

} // namespace
} // namespace mneme

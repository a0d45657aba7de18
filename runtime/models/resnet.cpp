#include "runtime/models/image_layers.hpp"
#include "runtime/options/keys.hpp"
#include <algorithm>
namespace mneme {
namespace {

enum class norm_kind : std::uint8_t { batch, group };
enum class shortcut_kind : std::uint8_t { option_a, option_a_both_sides, convolution };
enum class last_relu : std::uint8_t { automatic, on, off };
enum class stem_kind : std::uint8_t { automatic, cifar, imagenet };

/// Options of residual nets (He et al. 2016, "Deep Residual Learning for Image Recognition").
struct resnet_shape {
  std::int64_t width = 16; ///< Channels of the first stage; each later stage doubles them and halves the image.
  std::vector<std::int64_t> blocks{}; ///< Number of residual blocks of each stage.
  /// true: blocks of convolutions of 1x1, 3x3 and 1x1 to four times the channels. false: two convolutions of 3x3.
  bool bottleneck = false;
  norm_kind norm = norm_kind::batch;
  std::int64_t groups_max = 32;
  shortcut_kind shortcut = shortcut_kind::convolution; ///< Shortcut of the blocks that halve the image.
  bool imagenet_stem = false;
  bool last_relu = true; ///< true: a ReLU after the sum of the last block.
  head_shape head{};
};

/// The largest allowed number of groups that divides the channels and leaves at least two channels per group. With one
/// channel per group, normalizing a last stage of one pixel would set that pixel to zero.
std::int64_t groups_of(std::int64_t channels, std::int64_t groups_max) {
  auto groups = std::min(groups_max, channels / 2);
  while (channels % groups != 0)
    --groups;
  return groups;
}

/// Adds the layers of a residual net to an empty net, with torchvision's names.
class resnet_builder {
public:
  resnet_builder(network_builder& net, const resnet_shape& shape) : net_(net), shape_(shape) {}

  void add_all(std::int64_t classes) {
    add_stem();
    net_.expose_map("stem");
    for (std::size_t stage = 0; stage < shape_.blocks.size(); ++stage) {
      const auto name = "layer" + std::to_string(stage + 1);
      for (std::int64_t block = 0; block < shape_.blocks[stage]; ++block)
        add_block(name + "." + std::to_string(block), shape_.width << stage, stage > 0 && block == 0 ? 2 : 1,
                  shape_.last_relu || !is_last(stage, block) ? activation::relu : activation::none);
      net_.expose_map(name);
    }
    add_mean_pool(net_);
    net_.add_head("fc", classes, shape_.head);
  }

private:
  [[nodiscard]] bool is_last(std::size_t stage, std::int64_t block) const {
    return stage + 1 == shape_.blocks.size() && block + 1 == shape_.blocks[stage];
  }

  void add_stem() {
    const auto width = shape_.width;
    if (shape_.imagenet_stem)
      add_convolution("conv1", {.filters = width, .kernel = 7, .stride = 2, .padding = 3});
    else
      add_convolution("conv1", {.filters = width, .kernel = 3, .stride = 1, .padding = 1});
    add_normalization("bn1", activation::relu);
    if (shape_.imagenet_stem)
      add_max_pool(net_, 3, 2, 1);
  }

  void add_block(const std::string& name, std::int64_t width, std::int64_t stride, activation after) {
    const auto start = net_.cursor();
    if (shape_.bottleneck)
      add_narrow_branch(name, width, stride);
    else
      add_branch(name, width, stride);
    const auto end = net_.cursor();
    const auto channels = net_.shape_here().channels;
    net_.set_cursor(start);
    if (stride == 1 && net_.shape_here().channels == channels) {
      net_.set_cursor(end);
      return net_.add_sum(start, after);
    }
    add_shortcut(name + ".downsample", channels, stride);
    net_.add_sum(end, after);
  }

  void add_branch(const std::string& name, std::int64_t width, std::int64_t stride) {
    add_convolution(name + ".conv1", {.filters = width, .kernel = 3, .stride = stride, .padding = 1});
    add_normalization(name + ".bn1", activation::relu);
    add_convolution(name + ".conv2", {.filters = width, .kernel = 3, .stride = 1, .padding = 1});
    add_normalization(name + ".bn2", activation::none);
  }

  /// As in torchvision, the 3x3 convolution halves the image. In the paper, the first 1x1 convolution does.
  void add_narrow_branch(const std::string& name, std::int64_t width, std::int64_t stride) {
    add_convolution(name + ".conv1", {.filters = width, .kernel = 1, .stride = 1});
    add_normalization(name + ".bn1", activation::relu);
    add_convolution(name + ".conv2", {.filters = width, .kernel = 3, .stride = stride, .padding = 1});
    add_normalization(name + ".bn2", activation::relu);
    add_convolution(name + ".conv3", {.filters = 4 * width, .kernel = 1, .stride = 1});
    add_normalization(name + ".bn3", activation::none);
  }

  void add_shortcut(const std::string& name, std::int64_t width, std::int64_t stride) {
    if (shape_.shortcut == shortcut_kind::option_a)
      return add_subsampling(net_, stride, width);
    if (shape_.shortcut == shortcut_kind::option_a_both_sides)
      return add_subsampling(net_, stride, width, (width - net_.shape_here().channels) / 2);
    add_convolution(name + ".0", {.filters = width, .kernel = 1, .stride = stride});
    add_normalization(name + ".1", activation::none);
  }

  void add_convolution(const std::string& name, convolution_options how) {
    how.bias = false; // the normalization after the convolution would cancel a bias
    how.he_normal = true;
    mneme::add_convolution(net_, name, how);
  }

  void add_normalization(const std::string& name, activation after) {
    const auto groups = shape_.norm == norm_kind::batch ? 0 : groups_of(net_.shape_here().channels, shape_.groups_max);
    net_.add_normalization(name, groups, after);
  }

  network_builder& net_;
  const resnet_shape& shape_;
};

/// Common base of all residual nets.
class resnet_kind : public model_kind {
public:
  void keys(key_table& table) override {
    table.integer("width", width_, {.low = 2, .high = 4096},
                  "Channels of the first stage; each of the others has twice as many as the one before it.");
    table.choice("norm", norm_, {{"batch", norm_kind::batch}, {"group", norm_kind::group}},
                 "Normalization: over the rows of a step, or over groups of channels of each row.");
    table.integer("groups", groups_, {.low = 1, .high = 1024},
                  "norm = \"group\": maximum number of groups; every group has at least two channels.");
    table.choice("last_relu", last_relu_,
                 {{"auto", last_relu::automatic}, {"on", last_relu::on}, {"off", last_relu::off}},
                 "ReLU after the last block; without it features may be negative; \"auto\": the method's default.");
    table.omit_default_from_digest();
    head_keys(table);
  }

protected:
  explicit resnet_kind(std::int64_t width) : width_(width), usual_width_(width) {}

  [[nodiscard]] resnet_shape shape_of(std::vector<std::int64_t> blocks) const {
    return {.width = width_,
            .blocks = std::move(blocks),
            .norm = norm_,
            .groups_max = groups_,
            .last_relu = last_relu_ == last_relu::automatic ? !head().signed_features : last_relu_ == last_relu::on,
            .head = head()};
  }

  /// @param name name of the kind, followed by the part of the net's identity that the kind's own keys determine
  [[nodiscard]] tl::expected<model_ref, std::string> network_named(const std::string& name,
                                                                   const resnet_shape& net_shape,
                                                                   std::array<std::int64_t, 3> shape,
                                                                   std::int64_t classes) const {
    const auto [channels, height, pixels] = shape;
    if (const auto smallest_px = smallest_px_of(net_shape); height < smallest_px || pixels < smallest_px)
      return tl::unexpected(name + " needs images of at least " + std::to_string(smallest_px) + " x " +
                            std::to_string(smallest_px) + " pixels, not " + std::to_string(height) + " x " +
                            std::to_string(pixels) + "; mlp accepts any shape");
    const auto norm = net_shape.norm == norm_kind::batch ? "batch" : "group" + std::to_string(net_shape.groups_max);
    const auto width = width_ == usual_width_ ? std::string{} : "width " + std::to_string(width_) + " ";
    const auto* const ending = net_shape.last_relu ? " " : " no last relu ";
    network_builder net(name + " " + width + norm + ending + std::to_string(channels) + "x" + std::to_string(height) +
                            "x" + std::to_string(pixels) + "-" + std::to_string(classes),
                        shape);
    resnet_builder(net, net_shape).add_all(classes);
    return net.build();
  }

private:
  /// Smallest image side, in pixels, at which the last halving still reads more than one pixel.
  static std::int64_t smallest_px_of(const resnet_shape& shape) {
    const auto halvings = shape.blocks.size() - 1 + (shape.imagenet_stem ? 2 : 0);
    return (std::int64_t{1} << (halvings - 1)) + 1;
  }

  norm_kind norm_ = norm_kind::batch;
  last_relu last_relu_ = last_relu::automatic;
  std::int64_t groups_ = 32, width_, usual_width_;
};

/// The residual nets for CIFAR (section 4.2 of the paper): 6 n + 2 layers in three stages of n blocks.
template <std::int64_t Blocks>
class cifar_resnet_kind final : public resnet_kind {
public:
  cifar_resnet_kind() : resnet_kind(16) {}

  void keys(key_table& table) override {
    resnet_kind::keys(table);
    table.choice("shortcut", shortcut_,
                 {{"option-a", shortcut_kind::option_a},
                  {"option-a-both-sides", shortcut_kind::option_a_both_sides},
                  {"conv1x1", shortcut_kind::convolution}},
                 "Shortcut of a block that halves the image: every second pixel, with zero channels after the others "
                 "or half of them before (as common in weights for CIFAR); or a 1x1 convolution.");
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    auto net_shape = shape_of({Blocks, Blocks, Blocks});
    net_shape.shortcut = shortcut_;
    const auto* const suffix = shortcut_ == shortcut_kind::option_a      ? ""
                               : shortcut_ == shortcut_kind::convolution ? " conv1x1"
                                                                         : " both sides";
    return network_named("resnet" + std::to_string(6 * Blocks + 2) + suffix, net_shape, shape, classes);
  }

private:
  shortcut_kind shortcut_ = shortcut_kind::option_a;
};

/// Residual nets of four stages, as in torchvision; stem "cifar" is the usual variant for small images.
class torchvision_kind final : public resnet_kind {
public:
  torchvision_kind(std::string name, std::vector<std::int64_t> blocks, bool bottleneck)
      : resnet_kind(64), name_(std::move(name)), blocks_(std::move(blocks)), bottleneck_(bottleneck) {}

  void keys(key_table& table) override {
    resnet_kind::keys(table);
    table.choice(
        "stem", stem_, {{"auto", stem_kind::automatic}, {"cifar", stem_kind::cifar}, {"imagenet", stem_kind::imagenet}},
        "First layers: a 3x3 convolution, or a 7x7 one with stride 2 and pooling; \"auto\": imagenet above 64 pixels.");
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    auto net_shape = shape_of(blocks_);
    net_shape.bottleneck = bottleneck_;
    net_shape.imagenet_stem =
        stem_ == stem_kind::automatic ? std::max(shape[1], shape[2]) > small_px : stem_ == stem_kind::imagenet;
    return network_named(name_ + (net_shape.imagenet_stem ? " imagenet" : " cifar"), net_shape, shape, classes);
  }

private:
  static constexpr std::int64_t small_px = 64;

  std::string name_;
  std::vector<std::int64_t> blocks_;
  bool bottleneck_;
  stem_kind stem_ = stem_kind::automatic;
};

const model_registration small{
    {.name = "resnet8",
     .summary = "residual net for small images, a block per stage, widths 16, 32, 64 (He et al. 2016)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<cifar_resnet_kind<1>>(); }}};
const model_registration medium{
    {.name = "resnet32",
     .summary = "residual net for small images, five blocks per stage, widths 16, 32, 64 (He et al. 2016)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<cifar_resnet_kind<5>>(); }}};
const model_registration large{
    {.name = "resnet18",
     .summary = "residual net of 18 layers as in torchvision, two blocks per stage, widths 64 to 512",
     .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<torchvision_kind>("resnet18", std::vector<std::int64_t>{2, 2, 2, 2}, false);
     }}};
const model_registration deep{
    {.name = "resnet50",
     .summary = "residual net of 50 layers as in torchvision, bottleneck blocks, widths 256 to 2048",
     .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<torchvision_kind>("resnet50", std::vector<std::int64_t>{3, 4, 6, 3}, true);
     }}};
const model_registration deepest{
    {.name = "resnet152",
     .summary = "residual net of 152 layers as in torchvision, bottleneck blocks, widths 256 to 2048",
     .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<torchvision_kind>("resnet152", std::vector<std::int64_t>{3, 8, 36, 3}, true);
     }}};

} // namespace
} // namespace mneme

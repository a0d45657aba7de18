#include "runtime/models/network.hpp"
#include "runtime/options/keys.hpp"
#include <algorithm>
namespace mneme {
namespace {

enum class norm_kind : std::uint8_t { batch, group };
enum class shortcut_kind : std::uint8_t { option_a, convolution };
enum class stem_kind : std::uint8_t { automatic, cifar, imagenet };

/// What tells residual nets apart (He et al. 2016, "Deep Residual Learning for Image Recognition").
struct resnet_shape {
  std::vector<std::int64_t> widths{}; ///< Channels of each stage; all stages but the first halve the image.
  std::int64_t blocks = 1;            ///< Blocks of a stage: two convolutions and a shortcut each.
  norm_kind norm = norm_kind::batch;
  std::int64_t groups_max = 32;
  shortcut_kind shortcut = shortcut_kind::convolution; ///< Shortcut of the blocks that halve the image.
  bool imagenet_stem = false;
  head_kind head = head_kind::linear;
};

/// As many groups as are allowed, can be equal, and leave two channels in each: in one channel, normalisation over a
/// last stage of one pixel would leave nothing.
std::int64_t groups_of(std::int64_t channels, std::int64_t groups_max) {
  auto groups = std::min(groups_max, channels / 2);
  while (channels % groups != 0)
    --groups;
  return groups;
}

/// Adds the layers of a residual net to an empty one, under torchvision's names.
class resnet_builder {
public:
  resnet_builder(network& net, const resnet_shape& shape) : net_(net), shape_(shape) {}

  void add_all(std::int64_t classes) {
    add_stem();
    net_.mark_map("stem");
    for (std::size_t stage = 0; stage < shape_.widths.size(); ++stage) {
      const auto name = "layer" + std::to_string(stage + 1);
      for (std::int64_t block = 0; block < shape_.blocks; ++block)
        add_block(name + "." + std::to_string(block), shape_.widths[stage], stage > 0 && block == 0 ? 2 : 1);
      net_.mark_map(name);
    }
    net_.add_mean_pool();
    net_.add_head("fc", classes, shape_.head);
  }

private:
  void add_stem() {
    const auto width = shape_.widths.front();
    if (shape_.imagenet_stem)
      add_convolution("conv1", {.filters = width, .kernel = 7, .stride = 2, .padding = 3});
    else
      add_convolution("conv1", {.filters = width, .kernel = 3, .stride = 1, .padding = 1});
    add_normalisation("bn1", activation::relu);
    if (shape_.imagenet_stem)
      net_.add_max_pool(3, 2, 1);
  }

  void add_block(const std::string& name, std::int64_t width, std::int64_t stride) {
    const auto start = net_.here();
    add_convolution(name + ".conv1", {.filters = width, .kernel = 3, .stride = stride, .padding = 1});
    add_normalisation(name + ".bn1", activation::relu);
    add_convolution(name + ".conv2", {.filters = width, .kernel = 3, .stride = 1, .padding = 1});
    add_normalisation(name + ".bn2", activation::none);
    if (stride == 1)
      return net_.add_sum(start, activation::relu);
    const auto end = net_.here();
    net_.go_to(start);
    add_shortcut(name + ".downsample", width, stride);
    net_.add_sum(end, activation::relu);
  }

  void add_shortcut(const std::string& name, std::int64_t width, std::int64_t stride) {
    if (shape_.shortcut == shortcut_kind::option_a)
      return net_.add_subsampling(stride, width);
    add_convolution(name + ".0", {.filters = width, .kernel = 1, .stride = stride});
    add_normalisation(name + ".1", activation::none);
  }

  void add_convolution(const std::string& name, network::convolution how) {
    how.bias = false; // the normalisation that follows would take it away
    how.he_normal = true;
    net_.add_convolution(name, how);
  }

  void add_normalisation(const std::string& name, activation after) {
    const auto groups = shape_.norm == norm_kind::batch ? 0 : groups_of(net_.shape_here().channels, shape_.groups_max);
    net_.add_normalisation(name, groups, after);
  }

  network& net_;
  const resnet_shape& shape_;
};

/// What all residual nets have in common.
class resnet_kind : public model_kind {
public:
  void keys(key_table& table) override {
    table.choice("norm", norm_, {{"batch", norm_kind::batch}, {"group", norm_kind::group}},
                 "Normalisation: over a step's rows, or over groups of channels of each row.");
    table.integer("groups", groups_, {.low = 1, .high = 1024},
                  "Groups of channels, norm = \"group\": at most so many, with two channels or more in each.");
  }

protected:
  [[nodiscard]] resnet_shape shape_of(std::vector<std::int64_t> widths, std::int64_t blocks) const {
    return {.widths = std::move(widths), .blocks = blocks, .norm = norm_, .groups_max = groups_, .head = head()};
  }

  /// @param name the kind's, and what its own keys add to its identity
  [[nodiscard]] static tl::expected<model_ref, std::string> made(const std::string& name, const resnet_shape& net_shape,
                                                                 std::array<std::int64_t, 3> shape,
                                                                 std::int64_t classes) {
    const auto [channels, height, width] = shape;
    if (const auto smallest_px = smallest_px_of(net_shape); height < smallest_px || width < smallest_px)
      return tl::unexpected(name + " needs images of at least " + std::to_string(smallest_px) + " x " +
                            std::to_string(smallest_px) + " pixels, not " + std::to_string(height) + " x " +
                            std::to_string(width) + "; mlp takes any shape");
    const auto norm = net_shape.norm == norm_kind::batch ? "batch" : "group" + std::to_string(net_shape.groups_max);
    auto net =
        std::make_shared<network>(name + " " + norm + " " + std::to_string(channels) + "x" + std::to_string(height) +
                                      "x" + std::to_string(width) + "-" + std::to_string(classes),
                                  shape);
    resnet_builder(*net, net_shape).add_all(classes);
    return net;
  }

private:
  /// With a pixel less, the last halving would be of a single pixel.
  static std::int64_t smallest_px_of(const resnet_shape& shape) {
    const auto halvings = shape.widths.size() - 1 + (shape.imagenet_stem ? 2 : 0);
    return (std::int64_t{1} << (halvings - 1)) + 1;
  }

  norm_kind norm_ = norm_kind::batch;
  std::int64_t groups_ = 32;
};

/// The residual nets for CIFAR of section 4.2: 6 n + 2 layers in three stages of n blocks.
template <std::int64_t Blocks>
class cifar_resnet_kind final : public resnet_kind {
public:
  void keys(key_table& table) override {
    resnet_kind::keys(table);
    table.choice("shortcut", shortcut_,
                 {{"option-a", shortcut_kind::option_a}, {"conv1x1", shortcut_kind::convolution}},
                 "Where the image is halved: every second pixel and channels of zeros, or a convolution of 1x1.");
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    auto net_shape = shape_of({16, 32, 64}, Blocks);
    net_shape.shortcut = shortcut_;
    const auto* const suffix = shortcut_ == shortcut_kind::option_a ? "" : " conv1x1";
    return made("resnet" + std::to_string(6 * Blocks + 2) + suffix, net_shape, shape, classes);
  }

private:
  shortcut_kind shortcut_ = shortcut_kind::option_a;
};

/// The residual net of 18 layers, as torchvision builds it; stem "cifar" is what is made of it for small images.
class resnet18_kind final : public resnet_kind {
public:
  void keys(key_table& table) override {
    resnet_kind::keys(table);
    table.choice(
        "stem", stem_, {{"auto", stem_kind::automatic}, {"cifar", stem_kind::cifar}, {"imagenet", stem_kind::imagenet}},
        "First layers: convolution of 3x3, or of 7x7 with stride 2 and pooling; \"auto\": imagenet above 64 pixels.");
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    auto net_shape = shape_of({64, 128, 256, 512}, 2);
    net_shape.imagenet_stem =
        stem_ == stem_kind::automatic ? std::max(shape[1], shape[2]) > small_px : stem_ == stem_kind::imagenet;
    return made(net_shape.imagenet_stem ? "resnet18 imagenet" : "resnet18 cifar", net_shape, shape, classes);
  }

private:
  static constexpr std::int64_t small_px = 64;

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
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<resnet18_kind>(); }}};

} // namespace
} // namespace mneme

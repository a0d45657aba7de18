#include "runtime/models/activation_key.hpp"
#include "runtime/models/image_layers.hpp"
namespace mneme {
namespace {

/// LeNet-5 (LeCun et al. 1998) in its modern form: with ReLU, max pooling and all connections between conv1 and conv2.
class lenet_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    activation_key(table, activation_);
    head_keys(table);
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto [channels, height, width] = shape;
    const std::int64_t padding = height == 28 && width == 28 ? 2 : 0; // pads 28 px to the 32 px of the paper
    if (height < smallest_px || width < smallest_px)
      return tl::unexpected("lenet needs images of at least " + std::to_string(smallest_px) + " x " +
                            std::to_string(smallest_px) + " pixels, not " + std::to_string(height) + " x " +
                            std::to_string(width) + "; mlp accepts any shape");
    network_builder net("lenet " + std::to_string(channels) + "x" + std::to_string(height) + "x" +
                            std::to_string(width) + "-" + std::to_string(classes) + in_identity(activation_),
                        shape);
    add_convolution(net, "conv1", {.filters = 6, .kernel = 5, .padding = padding, .after = activation_});
    add_max_pool(net, 2, 2, 0);
    net.expose_map("conv1");
    add_convolution(net, "conv2", {.filters = 16, .kernel = 5, .after = activation_});
    add_max_pool(net, 2, 2, 0);
    net.expose_map("conv2");
    net.add_linear("fc1", 120, activation_);
    net.expose_map("fc1");
    net.add_linear("fc2", 84, activation_);
    net.add_head("fc3", classes, head());
    return net.build();
  }

private:
  static constexpr std::int64_t smallest_px = 16; // the second pooling would leave no pixels of smaller images

  activation activation_ = activation::relu;
};

const model_registration lenet_line{
    {.name = "lenet",
     .summary = "LeNet-5 with ReLU and max-pooling (LeCun et al. 1998)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<lenet_kind>(); }}};

} // namespace
} // namespace mneme

#include "runtime/models/activation_key.hpp"
#include "runtime/models/image_layers.hpp"
namespace mneme {
namespace {

/// The CNN of the CIFAR-10 benchmark of pfl-research (Granqvist et al. 2024), after the net of Reddi et al. 2021,
/// "Adaptive Federated Optimization": two convolutions without padding, dropout, one hidden layer.
class cnn_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    activation_key(table, activation_);
    head_keys(table);
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto [channels, height, width] = shape;
    if (height < smallest_px || width < smallest_px)
      return tl::unexpected("cnn needs images of at least " + std::to_string(smallest_px) + " x " +
                            std::to_string(smallest_px) + " pixels, not " + std::to_string(height) + " x " +
                            std::to_string(width) + "; mlp accepts any shape");
    network_builder net("cnn " + std::to_string(channels) + "x" + std::to_string(height) + "x" + std::to_string(width) +
                            "-" + std::to_string(classes) + in_identity(activation_),
                        shape);
    add_convolution(net, "conv1", {.filters = 32, .after = activation_});
    net.expose_map("conv1");
    add_convolution(net, "conv2", {.filters = 64, .after = activation_});
    net.expose_map("conv2");
    add_max_pool(net, 2, 2, 0);
    net.add_dropout(0.25);
    net.add_linear("fc1", 128, activation_);
    net.add_dropout(0.5);
    net.add_head("fc2", classes, head());
    return net.build();
  }

private:
  static constexpr std::int64_t smallest_px = 6; // the pooling would leave no pixels of smaller images

  activation activation_ = activation::relu;
};

const model_registration cnn_line{
    {.name = "cnn",
     .summary = "two convolutions, dropout, one hidden layer (Reddi et al. 2021)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<cnn_kind>(); }}};

} // namespace
} // namespace mneme

#include "runtime/models/activation_key.hpp"
#include "runtime/models/network_builder.hpp"
#include "runtime/options/keys.hpp"
namespace mneme {
namespace {

/// Fully connected layers with an activation function between them.
class mlp_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    table.integers("hidden", hidden_, {.low = 1, .high = 65'536},
                   "Widths of the hidden layers, starting at the input.");
    activation_key(table, activation_);
    head_keys(table);
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    auto identity = "mlp " + std::to_string(shape[0] * shape[1] * shape[2]) + "-";
    for (const auto width : hidden_)
      identity += std::to_string(width) + "-";
    network_builder net(identity + std::to_string(classes) + in_identity(activation_), shape);
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      const auto name = "fc" + std::to_string(i + 1);
      net.add_linear(name, hidden_[i], activation_);
      net.expose_map(name);
    }
    net.add_head("fc" + std::to_string(hidden_.size() + 1), classes, head());
    return net.build();
  }

private:
  std::vector<std::int64_t> hidden_{200, 100};
  activation activation_ = activation::relu;
};

const model_registration mlp_line{
    {.name = "mlp", .summary = "multi-layer perceptron", .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<mlp_kind>();
     }}};

} // namespace
} // namespace mneme

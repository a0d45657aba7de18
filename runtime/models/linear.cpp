#include "runtime/models/network_builder.hpp"
namespace mneme {
namespace {

/// Softmax regression on the pixels: the net is only a head.
class linear_kind final : public model_kind {
public:
  void keys(key_table& table) override { head_keys(table); }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto inputs = shape[0] * shape[1] * shape[2];
    network_builder net("linear " + std::to_string(inputs) + "-" + std::to_string(classes), shape);
    net.add_head("fc", classes, head());
    return net.build();
  }
};

const model_registration linear_line{
    {.name = "linear",
     .summary = "softmax regression on the pixels or numbers of a row",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<linear_kind>(); }}};

} // namespace
} // namespace mneme

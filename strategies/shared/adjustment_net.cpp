#include "strategies/shared/adjustment_net.hpp"
#include "runtime/models/network_builder.hpp"
#include <ATen/ops/empty.h>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

class adjustment_builder {
public:
  adjustment_builder(network_builder& net, const adjustment_shape& shape) : net_(net), shape_(shape) {}

  void add_module() {
    network_place first = 0;
    for (std::size_t i = 0; i < shape_.hidden.size(); ++i) {
      add_block("adjustment", i + 1, shape_.hidden[i]);
      if (i == 0)
        first = net_.cursor();
    }
    if (shape_.shortcut == shortcut_form::hidden_sum)
      net_.add_sum(first, activation::none);
    const auto last = shape_.hidden.size() + 1;
    net_.add_linear(fmt::format("adjustment.fc{}", last), shape_.width, activation::none);
    if (shape_.batch_norm)
      net_.add_normalization(fmt::format("adjustment.bn{}", last), 0, activation::none);
    if (shape_.shortcut == shortcut_form::hidden_projection)
      add_projection(first);
    else if (shape_.shortcut == shortcut_form::input_projection)
      add_projection(0);
    net_.mark_features();
  }

  void add_head(std::int64_t classes) {
    add_block("head", 1, shape_.head);
    net_.add_head("head.fc2", classes);
  }

private:
  void add_block(const char* part, std::size_t number, std::int64_t width) {
    const auto after = shape_.batch_norm ? activation::none : activation::relu;
    net_.add_linear(fmt::format("{}.fc{}", part, number), width, after);
    if (shape_.batch_norm)
      net_.add_normalization(fmt::format("{}.bn{}", part, number), 0, activation::relu);
    if (shape_.dropout > 0.0)
      net_.add_dropout(shape_.dropout);
  }
  void add_projection(network_place from) {
    const auto end = net_.cursor();
    net_.set_cursor(from);
    net_.add_linear("adjustment.shortcut", shape_.width, activation::none, /*biased=*/false);
    net_.add_sum(end, activation::none);
  }

  network_builder& net_;
  const adjustment_shape& shape_;
};

std::string identity_of(const adjustment_shape& shape, std::int64_t features, std::int64_t classes) {
  const auto module = shape.adjusts ? fmt::format("{}-{}-{} shortcut {}", features, fmt::join(shape.hidden, "-"),
                                                  shape.width, static_cast<int>(shape.shortcut))
                                    : fmt::format("{}", features);
  return fmt::format("adjustment {} head {}-{}{} dropout {}", module, shape.head, classes,
                     shape.batch_norm ? " batch" : "", shape.dropout);
}

} // namespace

impossible_shape shape_error(const adjustment_shape& shape) {
  if (!shape.adjusts)
    return {};
  const auto widths = fmt::format("{}", fmt::join(shape.hidden, ", "));
  if (shape.shortcut == shortcut_form::hidden_projection && shape.hidden.empty())
    return {"adjustment_hidden", "strategy.adjustment_hidden = []: the shortcut starts after a hidden block; expected "
                                 "one, or shortcut = \"input-projection\" or \"none\""};
  if (shape.shortcut == shortcut_form::hidden_sum &&
      (shape.hidden.size() < 2 || shape.hidden.front() != shape.hidden.back()))
    return {"shortcut",
            fmt::format("strategy.shortcut = \"hidden-sum\" adds the first hidden block to the last, but "
                        "adjustment_hidden = [{}]; expected two or more blocks, the first and the last equally wide",
                        widths)};
  return {};
}

model_ref adjustment_net(const adjustment_shape& shape, std::int64_t features, std::int64_t classes) {
  network_builder net(identity_of(shape, features, classes), std::array<std::int64_t, 3>{1, 1, features});
  adjustment_builder builder(net, shape);
  if (shape.adjusts)
    builder.add_module();
  builder.add_head(classes);
  return net.build();
}

at::Tensor draw_adjustment(const model& net, matrix_draw how, const rng_key& key) {
  auto flat = at::empty({net.size()}, at::kFloat);
  auto* const values = flat.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < net.layout().size(); ++i) {
    const auto& entry = net.layout()[i];
    auto own = key;
    own.index = i;
    rng_stream draw(own);
    const bool matrix = entry.shape.size() == 2;
    const auto fan_in = matrix ? static_cast<double>(entry.shape[1]) : 1.0;
    for (auto at = entry.offset; at < entry.offset + entry.size; ++at) {
      double value = entry.constant;
      if (how == matrix_draw::kaiming && matrix)
        value = std::sqrt(2.0 / fan_in) * draw.normal();
      else if (how == matrix_draw::uniform && entry.bound > 0.0)
        value = draw.uniform(-entry.bound, entry.bound);
      values[at] = static_cast<float>(value);
    }
  }
  return flat;
}

} // namespace mneme

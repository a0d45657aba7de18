// layers: a net that the user defines as a list of layers in the scenario.
#include "runtime/models/layers.hpp"
#include "runtime/models/layers_builder.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>
namespace mneme {
namespace {

class layers_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    table.texts("layers", layers_,
                "The layers, as in [\"conv 32 3x3 pad 1\", \"batch-norm\", \"relu\", \"max-pool 2\", \"flatten\", "
                "\"linear classes\"]; \"residual [\", ..., \"]\" or \"] shortcut [\", ..., \"]\" are blocks. "
                "docs/nets.md lists all layers.");
    head_keys(table);
  }
  [[nodiscard]] bool reads_tokens() const override {
    return !layers_.empty() && layers_.front().find("embedding") != std::string::npos &&
           layers_.front().find("patch-embedding") == std::string::npos;
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    return build_layers(layers_, {.shape = shape, .classes = classes, .tokens = tokens(), .head = head()});
  }

private:
  std::vector<std::string> layers_{"flatten", "linear 200", "relu", "linear classes"};
};

const model_registration layers_line{
    {.name = "layers",
     .summary = "a user-defined net, layer by layer in model.layers, fused like all others; docs/nets.md",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<layers_kind>(); }}};

/// Gives the net's parameters their names and initial values. Returns an error; "" on success.
std::string put_given(network_builder& net, const std::map<std::string, given_parameter>& given) {
  std::string error;
  net.for_each_parameter([&](parameter& entry) {
    const auto place = given.find(entry.name);
    if (place == given.end())
      return;
    const auto& [name, value] = place->second;
    if (value.sizes() != at::IntArrayRef(entry.shape))
      error = fmt::format("the parameter '{}' has the shape [{}]; expected [{}]", name, fmt::join(value.sizes(), ", "),
                          fmt::join(entry.shape, ", "));
    entry.name = name;
    entry.leading.assign(value.const_data_ptr<float>(), value.const_data_ptr<float>() + value.numel());
  });
  return error;
}

} // namespace

tl::expected<model_ref, std::string> build_layers(const std::vector<std::string>& texts,
                                                  const layers_options& options) {
  const auto layers = parse_layers(texts);
  if (!layers)
    return tl::unexpected(layers.error());
  const auto [channels, height, width] = options.shape;
  const auto text = fmt::format("{}{}", fmt::join(texts, "\n"), options.foreign_digest);
  network_builder net(fmt::format("layers {:016x} {}x{}x{}-{}", XXH3_64bits(text.data(), text.size()), channels, height,
                                  width, options.classes),
                      options.shape);
  const auto kind = options.tokens > 0             ? arriving::indices
                    : channels == 1 && height == 1 ? arriving::numbers
                                                   : arriving::images;
  net.set_note(options.note);
  layers_builder builder(net, kind, options.classes, options.tokens, options.head);
  builder.set_foreign(options.foreign);
  auto error = builder.add_all(*layers);
  if (error.empty())
    error = put_given(net, options.given);
  if (!error.empty())
    return tl::unexpected(std::move(error));
  return net.build();
}

} // namespace mneme

#include "runtime/modules/native_net.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/models/frozen_parameters.hpp"
#include "runtime/models/layers.hpp"
#include "runtime/modules/layer_text.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
namespace mneme {
namespace {

// Axes: B rows, P weights of a model.

// The numbers differ, so that the comparison finds an axis that was mistaken for the row axis because of its size.
constexpr std::int64_t compared_rows = 5, sized_rows = 7;
constexpr double tolerance = 1e-4; // relative to the largest score; allows for float32 rounding errors of deep nets

/// Returns distinct values between -1 and 1, [numbers] float32.
at::Tensor spread_values(std::int64_t numbers, double offset) {
  return at::arange(numbers, at::kDouble).mul(0.7390851332).add(offset).sin().to(at::kFloat);
}

/// [1, B, C, H, W] float32
at::Tensor sample_rows(const module_rows& rows, std::int64_t count) {
  const auto [channels, height, width] = rows.input;
  const auto numbers = count * channels * height * width;
  const auto values = rows.form == row_form::tokens
                          ? at::arange(numbers, at::kLong).mul(7).remainder(rows.tokens).to(at::kFloat)
                          : spread_values(numbers, 0.1);
  return values.view({1, count, channels, height, width});
}

const parameter* entry_named(const model& net, const std::string& name) {
  for (const auto& entry : net.layout())
    if (entry.name == name)
      return &entry;
  return nullptr;
}

/// Changes the weights that both nets have, in both nets, so that no layer remains the identity or zero.
void change_weights(const model& module, at::Tensor& of_module, const model& native, at::Tensor& of_native) {
  double offset = 0.0;
  for (const auto& entry : native.layout()) {
    const auto* const other = entry_named(module, entry.name);
    if (other == nullptr)
      continue;
    const auto value = as_in_files(of_module, *other);
    const auto noise = spread_values(entry.size, offset += 1.0).view(entry.shape).to(value.device());
    auto changed = value * (1.0 + 0.1 * noise) + 0.01 * noise;
    if (entry.name.ends_with(".running_var"))
      changed = changed.abs() + 0.01;
    put_as_in_files(of_module, *other, changed);
    put_as_in_files(of_native, entry, changed);
  }
}

/// Returns the reason why the nets differ; "" if they compute the same scores.
std::string difference(const module_net& module, const model& native, const module_rows& rows, const at::Device& on) {
  const model& original = module;
  const at::NoGradGuard no_gradients;
  auto of_module = initial_weights(module, 1), of_native = initial_weights(native, 1);
  module.put_own_values(of_module);
  change_weights(module, of_module, native, of_native);
  const auto inputs = sample_rows(rows, compared_rows).to(on);
  const class_range classes{0, module.classes()};
  const auto expected = original.forward(of_module.unsqueeze(0).to(on), inputs, classes, nullptr, nullptr).logits;
  const auto found = native.forward(of_native.unsqueeze(0).to(on), inputs, classes, nullptr, nullptr).logits;
  const auto largest = expected.abs().max().item<double>();
  const auto error = (expected - found).abs().max().item<double>();
  if (error <= tolerance * std::max(largest, 1e-3)) // false for NaN
    return "";
  return fmt::format("the layers compute other scores than the file (a difference of {:.2g} of {:.2g})", error,
                     largest);
}

/// Makes the last layer the head. Returns an error; "" on success.
std::string add_head(const module_net& module, const module_shape& shape, graph_layers& described) {
  auto& layers = described.layers;
  if (!shape.scores) {
    for (const auto& entry : module.layout())
      if (entry.head && entry.name.ends_with(".weight")) {
        layers.push_back(entry.name.substr(0, entry.name.size() - 7) + ": linear classes");
        return "";
      }
    return "the run has no classes";
  }
  // The segment returns the scores.
  if (!described.segments.empty() && layers.back() == described.segments.back().text())
    return shape.head == head_kind::linear ? "" : "the method needs a head, but the file returns the scores";
  auto& last = layers.back();
  const auto ending = fmt::format(": linear {}", shape.classes);
  if (shape.head != head_kind::linear || !last.ends_with(ending))
    return "the result: the last layer is no linear layer with a bias; expected one, the head";
  last.replace(last.size() - ending.size(), ending.size(), ": linear classes");
  return "";
}

/// The parameters of the file, keyed by the names that the layers give to them.
std::map<std::string, given_parameter> given_parameters(const exported_graph& graph, const graph_layers& layers) {
  std::map<std::string, given_parameter> given;
  for (const auto& held : graph.tensors())
    if (held.value.scalar_type() == at::kFloat) {
      const auto renamed = layers.renamed.find(held.name);
      given[renamed == layers.renamed.end() ? held.name : renamed->second] = {held.name, held.value.cpu().contiguous()};
    }
  return given;
}

tl::expected<model_ref, std::string> frozen_as_in_file(const exported_graph& graph, const module_shape& shape,
                                                       const graph_layers& layers, const model_ref& net) {
  std::vector<std::string> frozen;
  for (const auto& name : layers.frozen) {
    const bool is_parameter = std::any_of(graph.tensors().begin(), graph.tensors().end(),
                                          [&](const auto& held) { return held.name == name && held.parameter; });
    if (entry_named(*net, name) != nullptr && (shape.trained || !is_parameter))
      frozen.push_back(name);
  }
  const auto held = with_frozen(net, frozen);
  return held ? tl::expected<model_ref, std::string>(*held)
              : tl::unexpected(fmt::format("{}", fmt::join(held.error(), "; ")));
}

/// Names a parameter that two layers have; "" if there is none.
std::string parameter_used_twice(const model& net) {
  std::set<std::string> names;
  for (const auto& entry : net.layout())
    if (!names.insert(entry.name).second)
      return entry.name;
  return "";
}

using foreign_layers = std::map<std::string, foreign_layer>;

/// Builds the net of the translated layers. Fails with a reason.
/// @param segments by their texts @param note see network::note()
tl::expected<model_ref, std::string> build(const exported_graph& graph, const module_net& module,
                                           const module_shape& shape, const module_rows& rows, graph_layers& layers,
                                           foreign_layers segments = {}, std::string note = {}) {
  if (auto error = add_head(module, shape, layers); !error.empty())
    return tl::unexpected(std::move(error));
  const auto net = build_layers(layers.layers, {.shape = rows.input,
                                                .classes = shape.classes,
                                                .tokens = rows.form == row_form::tokens ? rows.tokens : 0,
                                                .head = {.kind = shape.head},
                                                .given = given_parameters(graph, layers),
                                                .foreign = std::move(segments),
                                                .foreign_digest = layers.segments.empty() ? "" : shape.digest,
                                                .note = std::move(note)});
  if (!net)
    return net;
  if (const auto name = parameter_used_twice(**net); !name.empty())
    return tl::unexpected(fmt::format("'{}' is used twice; expected layers with weights of their own", name));
  for (const auto& entry : (*net)->layout())
    if (entry_named(module, entry.name) == nullptr && !entry.buffer)
      return tl::unexpected(fmt::format("the file has no parameter '{}'", entry.name));
  const auto on = graph.tensors().empty() ? at::Device(at::kCPU) : graph.tensors()[0].value.device();
  if (auto error = difference(module, **net, rows, on); !error.empty())
    return tl::unexpected(std::move(error));
  return frozen_as_in_file(graph, shape, layers, *net);
}

std::size_t operators_of(const exported_program& part) {
  return static_cast<std::size_t>(
      std::count_if(part.calls.begin(), part.calls.end(), [](const auto& call) { return call.op.has_value(); }));
}

std::string listed(const std::vector<std::string>& reasons) {
  constexpr std::size_t listed_max = 5;
  const auto count = std::min(reasons.size(), listed_max);
  return fmt::format("{}{}", fmt::join(reasons.begin(), reasons.begin() + static_cast<std::ptrdiff_t>(count), "; "),
                     count < reasons.size() ? fmt::format("; and {} more", reasons.size() - count) : "");
}

/// Adds a net in which segments compute the operators without a layer, or the reason why there is none.
void add_partial_net(const exported_graph& graph, const module_net& module, const module_shape& shape,
                     const module_rows& rows, const std::vector<graph_view::shape>& sizes, native_net& made) {
  made.segment_error = exception_message_of([&] {
    auto layers =
        translate_graph(graph.program(), sizes, {.training = shape.training, .partly = true, .scores = shape.scores});
    const auto weighted = std::count_if(layers.layers.begin(), layers.layers.end(), has_weights);
    if (weighted == 0 || (weighted == 1 && has_weights(layers.layers.back())))
      throw no_layer("no layer before the head has weights");
    const graph_view view(graph.program(), sizes);
    foreign_layers segments;
    std::size_t unfused = 0;
    for (const auto& segment : layers.segments) {
      auto part = segment_program(view, segment, shape.training);
      unfused += operators_of(part);
      for (const auto& held : part.held)
        if (const auto& tensor = part.tensors[held.tensor]; !tensor.parameter && !(shape.training && tensor.moves))
          layers.frozen.push_back(tensor.name);
      segments[segment.text()] = make_segment_layer(
          view, segment, std::move(part),
          {.file = shape.file, .form = rows.form, .training = shape.training, .row_bytes = shape.row_bytes});
    }
    made.note =
        fmt::format("{} of {} operators of the module run as layers of mneme; the others run client by client "
                    "and unfused: {} (docs/modules.md)",
                    layers.operators - std::min(unfused, layers.operators), layers.operators, listed(layers.unmatched));
    auto net = build(graph, module, shape, rows, layers, std::move(segments), made.note);
    if (!net)
      throw no_layer(net.error());
    made.net = std::move(*net);
    made.described = std::move(layers);
  });
}

} // namespace

native_net make_native_net(const exported_graph& graph, const module_net& module, const module_shape& shape,
                           const module_rows& rows) {
  native_net made;
  const auto error = exception_message_of([&] {
    const at::NoGradGuard no_gradients;
    const auto device = graph.tensors().empty() ? at::Device(at::kCPU) : graph.tensors()[0].value.device();
    const auto sizes = graph.sizes(in_form(sample_rows(rows, sized_rows)[0], rows.form).to(device));
    made.described = translate_graph(graph.program(), sizes, {.training = shape.training});
    if (!made.described.is_whole())
      return add_partial_net(graph, module, shape, rows, sizes, made);
    auto net = build(graph, module, shape, rows, made.described);
    if (net)
      made.net = std::move(*net);
    else
      made.described.unmatched.push_back(net.error());
  });
  if (!error.empty())
    made.described.unmatched.push_back(error);
  return made;
}

std::string unfused_text(const native_net& tried) {
  const auto& layers = tried.described;
  return fmt::format("the module runs client by client and unfused: {} of {} operators have a layer of mneme; the "
                     "others: {}{} (docs/modules.md)",
                     layers.operators - std::min(layers.unmatched.size(), layers.operators), layers.operators,
                     listed(layers.unmatched),
                     tried.segment_error.empty() ? ""
                                                 : fmt::format(". No part runs as layers: {}", tried.segment_error));
}

} // namespace mneme

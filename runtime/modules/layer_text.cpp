#include "runtime/modules/layer_text.hpp"
#include <algorithm>
#include <c10/util/accumulate.h>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <set>
namespace mneme {
namespace {

using shape = graph_view::shape;

constexpr double norm_epsilon = 1e-5, norm_momentum = 0.1; // defaults of mneme's normalizations and of PyTorch

bool is_near(double a, double b) { return std::abs(a - b) < 1e-12; }

/// Formats " stride 2" for the value 2; "" for the default of the layer.
std::string word(const char* name, std::int64_t value, std::int64_t otherwise) {
  return value == otherwise ? "" : fmt::format(" {} {}", name, value);
}

/// A call, the slot that is translated, and the graph.
struct translated_call {
  const graph_view& graph;
  const exported_call& call;
  std::int32_t result;
  bool training;

  [[nodiscard]] std::int32_t input() const { return graph.first_slot(call); }
  [[nodiscard]] const shape& in() const { return graph.sizes(input()); }
  [[nodiscard]] const shape& out() const { return graph.sizes(result); }
  [[nodiscard]] std::int64_t square(const char* argument, std::int64_t otherwise) const {
    return graph.square(call, argument, otherwise);
  }
  [[nodiscard]] double number(const char* argument, double otherwise) const {
    return graph.number(call, argument, otherwise);
  }
  /// True if the call has a bias. Throws no_layer unless it is the bias of the layer `name`.
  [[nodiscard]] bool has_bias(const std::string& name) const {
    const auto* const bias = graph.parameter(call, "bias");
    if (bias && layer_with(bias, "bias") != name)
      throw no_layer(fmt::format("it adds '{}'; expected '{}.bias'", bias->name, name));
    return bias != nullptr;
  }
  /// The layer whose weight and bias a normalization reads.
  [[nodiscard]] std::string norm_name() const {
    const auto name = layer_with(graph.parameter(call, "weight"));
    if (!has_bias(name))
      throw no_layer("it has no bias; expected a weight and a bias");
    return name;
  }
};

// -- layers with parameters -------------------------------------------------------------------------------------------

std::int64_t padding_of(const translated_call& of, std::int64_t kernel, std::int64_t dilation, std::int64_t stride) {
  const auto* const kind = of.graph.constant(of.call, "padding");
  if (!kind || !kind->isString())
    return of.square("padding", 0);
  if (kind->toStringRef() == "valid")
    return 0;
  if (kernel % 2 == 0 || stride != 1)
    throw no_layer("its padding is \"same\"; expected an odd kernel, or a border that is equal on all sides");
  return dilation * (kernel / 2);
}

layer_text convolution(const translated_call& of) {
  const auto* const weight = of.graph.parameter(of.call, "weight");
  const auto name = layer_with(weight);
  const auto kernel = weight->value.size(2), stride = of.square("stride", 1), dilation = of.square("dilation", 1);
  if (weight->value.size(3) != kernel)
    throw no_layer(fmt::format("its kernel is {} x {}; expected a square", kernel, weight->value.size(3)));
  const auto padding = padding_of(of, kernel, dilation, stride);
  const auto groups = static_cast<std::int64_t>(of.number("groups", 1));
  return {.name = name,
          .text = fmt::format("conv {} {}x{}", weight->value.size(0), kernel, kernel) + word("stride", stride, 1) +
                  word("pad", padding, 0) + word("dilation", dilation, 1) + word("groups", groups, 1) +
                  (of.has_bias(name) ? "" : " no-bias")};
}

void expect_numbers_or_tokens(const translated_call& of) {
  if (of.out().size() > 3)
    throw no_layer(fmt::format("its rows have {} axes; expected rows of numbers or tokens", of.out().size() - 1));
}

layer_text linear(const translated_call& of) {
  expect_numbers_or_tokens(of);
  const auto* const weight = of.graph.parameter(of.call, "weight");
  const auto name = layer_with(weight);
  if (of.out().size() == 3 && !of.has_bias(name))
    throw no_layer("it has no bias; expected one in layers of tokens");
  return {.name = name, .text = fmt::format("linear {}{}", weight->value.size(0), of.has_bias(name) ? "" : " no-bias")};
}

/// Formats " 0.001"; "" for the default of the layer.
std::string epsilon_word(const translated_call& of) {
  const auto epsilon = of.number("eps", norm_epsilon);
  if (!(1e-12 <= epsilon && epsilon <= 1.0))
    throw no_layer(fmt::format("its eps is {:g}; expected 1e-12 to 1", epsilon));
  return is_near(epsilon, norm_epsilon) ? "" : fmt::format(" {}", epsilon);
}

layer_text batch_norm(const translated_call& of) {
  if (of.out().size() == 3)
    throw no_layer("its rows are tokens; expected images or rows of numbers");
  layer_text made{.name = of.norm_name(), .text = "batch-norm" + epsilon_word(of)};
  const auto *const mean = of.graph.held(of.graph.slot(of.call, "running_mean")), *const variance =
                                                                                      of.graph.held(of.graph.slot(
                                                                                          of.call, "running_var"));
  if (!mean || !variance || mean->name != made.name + ".running_mean" || variance->name != made.name + ".running_var")
    throw no_layer("it has no running statistics of its own");
  const auto* const trains = of.graph.constant(of.call, "training");
  if (!of.training || !trains || !trains->toBool())
    made.fixed = {mean->name, variance->name};
  else if (const auto momentum = of.number("momentum", 0.0); !(0.0 <= momentum && momentum <= 1.0))
    throw no_layer(fmt::format("its momentum is {:g}; expected 0 to 1", momentum));
  else if (!is_near(momentum, norm_momentum))
    made.text += fmt::format(" momentum {}", momentum);
  return made;
}

layer_text group_norm(const translated_call& of) {
  return {.name = of.norm_name(),
          .text = fmt::format("group-norm {:.0f}{}", of.number("num_groups", 1), epsilon_word(of))};
}

void expect_one_axis(const translated_call& of) {
  if (of.graph.integers(of.call, "normalized_shape").size() != 1)
    throw no_layer("it normalizes several axes; expected the last one");
  expect_numbers_or_tokens(of);
}

layer_text layer_norm(const translated_call& of) {
  expect_one_axis(of);
  return {.name = of.norm_name(), .text = fmt::format("layer-norm {:g}", of.number("eps", norm_epsilon))};
}

layer_text rms_norm(const translated_call& of) {
  expect_one_axis(of);
  const double epsilon = of.number("eps", std::numeric_limits<float>::epsilon()); // PyTorch's default
  return {.name = layer_with(of.graph.parameter(of.call, "weight")), .text = fmt::format("rms-norm {:.9g}", epsilon)};
}

layer_text embedding(const translated_call& of) {
  const auto* const weight = of.graph.parameter(of.call, "weight");
  if (of.graph.slot(of.call, "indices") != of.graph.program().rows_slot)
    throw no_layer("its tokens are computed; expected the rows themselves");
  if (of.number("padding_idx", -1) >= 0)
    throw no_layer("it has a padding token; expected none");
  return {.name = layer_with(weight),
          .text = fmt::format("embedding {} tokens {}", weight->value.size(1), weight->value.size(0)),
          .input = of.graph.program().rows_slot};
}

/// A unidirectional LSTM over tokens [B, T, W] whose initial states are zeros.
layer_text lstm(const translated_call& of) {
  const auto& graph = of.graph;
  for (const auto state : graph.slots(of.call, "hx"))
    if (const auto* const made = graph.producer(static_cast<std::int32_t>(state)); !made || made->name != "zeros")
      throw no_layer("its first states are not zeros");
  if (!graph.flag(of.call, "batch_first") || graph.flag(of.call, "bidirectional") || !graph.flag(of.call, "has_biases"))
    throw no_layer("expected one direction, batch_first = True and biases");
  if (of.training && of.number("dropout", 0.0) > 0.0)
    throw no_layer("it has dropout between its layers; expected none");
  const auto parameters = graph.slots(of.call, "params");
  const auto layers = static_cast<std::int64_t>(of.number("num_layers", 1));
  if (parameters.empty() || static_cast<std::int64_t>(parameters.size()) != 4 * layers)
    throw no_layer("it has projections; expected none");
  const auto* const first = graph.held(static_cast<std::int32_t>(parameters[0]));
  const auto name = layer_with(first, "weight_ih_l0");
  const auto width = first->value.size(0) / 4;
  if (of.result != of.call.results[0])
    throw no_layer("its states are read; expected its outputs");
  return {.name = name,
          .text = fmt::format("lstm {}", width) + word("layers", layers, 1),
          .input = graph.slot(of.call, "input")};
}

// -- layers without parameters ----------------------------------------------------------------------------------------

layer_text max_pool(const translated_call& of) {
  if (of.square("dilation", 1) != 1 || of.graph.flag(of.call, "ceil_mode"))
    throw no_layer("it has a dilation or ceil_mode; expected neither");
  const auto window = of.square("kernel_size", 1);
  return {.text = fmt::format("max-pool {} stride {}", window, of.square("stride", window)) +
                  word("pad", of.square("padding", 0), 0)};
}

layer_text average_pool(const translated_call& of) {
  const auto window = of.square("kernel_size", 1), padding = of.square("padding", 0);
  const auto* const divisor = of.graph.constant(of.call, "divisor_override");
  if (of.graph.flag(of.call, "ceil_mode") || (divisor && !divisor->isNone()) ||
      (padding > 0 && !of.graph.flag(of.call, "count_include_pad")))
    throw no_layer("it has ceil_mode, a divisor, or excludes its border; expected none of them");
  return {.text = fmt::format("avg-pool {} stride {}", window, of.square("stride", window)) + word("pad", padding, 0)};
}

layer_text adaptive_pool(const translated_call& of) {
  const auto &in = of.in(), &out = of.out();
  if (in.size() != 4)
    throw no_layer("expected images");
  if (out[2] == 1 && out[3] == 1)
    return {.text = "global-avg-pool"};
  if (out[2] != out[3] || in[2] % out[2] != 0 || in[3] % out[3] != 0 || in[2] / out[2] != in[3] / out[3])
    throw no_layer(
        fmt::format("it pools {} x {} pixels to {} x {}; expected equal square windows", in[2], in[3], out[2], out[3]));
  return {.text = fmt::format("adaptive-avg-pool {}", out[2])};
}

layer_text mean(const translated_call& of) {
  auto axes = of.graph.integers(of.call, "dim");
  const auto rank = static_cast<std::int64_t>(of.in().size());
  for (auto& axis : axes)
    axis = axis < 0 ? axis + rank : axis;
  std::sort(axes.begin(), axes.end());
  if (rank == 4 && axes == shape{2, 3})
    return {.text = "global-avg-pool"};
  if (rank == 3 && axes == shape{1})
    return {.text = "mean-tokens"};
  throw no_layer(fmt::format("a mean over axes [{}] of {}; expected the height and width of images, or the tokens",
                             fmt::join(axes, ", "), rank));
}

layer_text dropout(const translated_call& of) {
  const auto* const trains = of.graph.constant(of.call, "train");
  const auto rate = of.number("p", 0.5);
  return {.text = of.training && trains && trains->toBool() && rate > 0.0 ? fmt::format("dropout {}", rate) : ""};
}

layer_text one_token(const translated_call& of) {
  const auto axis = static_cast<std::int64_t>(of.number("dim", 0)),
             index = static_cast<std::int64_t>(of.number("index", 0));
  const auto& in = of.in();
  if (const auto* const inner = of.graph.producer(of.input()); inner && inner->name == "lstm" && axis == 0) {
    const bool is_output = inner->results.size() > 1 && of.input() == inner->results[1];
    if (is_output && (index == -1 || index == in[0] - 1)) // h of the last layer at the last token
      return {.text = "last-token", .input = inner->results[0]};
  }
  if (in.size() == 3 && axis == 1 && index == 0)
    return {.text = "first-token"};
  if (in.size() == 3 && axis == 1 && (index == -1 || index == in[1] - 1))
    return {.text = "last-token"};
  throw no_layer(fmt::format("it selects item {} of axis {}; expected the first or last token", index, axis));
}

/// Handles view(), reshape(), flatten() and squeeze(), provided that rows stay rows and the numbers of a row keep their
/// order.
layer_text reshaped(const translated_call& of) {
  const auto &in = of.in(), &out = of.out();
  const bool keeps_rows = !in.empty() && !out.empty() && in[0] == out[0];
  const bool is_pixel = in.size() == 4 && c10::multiply_integers(in.begin() + 2, in.end()) == 1;
  if (keeps_rows && out.size() == 2 && in.size() > 1)
    return {.text = "flatten"};
  if (keeps_rows && is_pixel && out.size() > 1 && out[1] == in[1]) // [B, C, 1, 1] to [B, C, 1]
    return {};
  if (in == out)
    return {};
  throw no_layer(fmt::format("it changes the shape of rows from [{}] to [{}]; expected one row of numbers",
                             fmt::join(in, ", "), fmt::join(out, ", ")));
}

layer_text full_slice(const translated_call& of) {
  if (of.in() != of.out())
    throw no_layer("it selects a part of the values; expected the first or last token");
  return {};
}

layer_text clipped(const translated_call& of) {
  if (of.number("min_val", -1.0) != 0.0 || of.number("max_val", 1.0) != 6.0)
    throw no_layer("expected the range 0 to 6, as in ReLU6");
  return {.text = "relu6"};
}

layer_text gelu(const translated_call& of) {
  const auto* const kind = of.graph.constant(of.call, "approximate");
  return {.text = kind && kind->isString() && kind->toStringRef() == "tanh" ? "gelu-tanh" : "gelu"};
}

layer_text elu(const translated_call& of) {
  if (of.number("scale", 1.0) != 1.0 || of.number("input_scale", 1.0) != 1.0)
    throw no_layer("it is scaled; expected a plain ELU");
  return {.text = fmt::format("elu {}", of.number("alpha", 1.0))};
}

layer_text softplus(const translated_call& of) {
  if (of.number("beta", 1.0) != 1.0 || of.number("threshold", 20.0) != 20.0)
    throw no_layer("expected beta = 1 and threshold = 20");
  return {.text = "softplus"};
}

layer_text leaky_relu(const translated_call& of) {
  return {.text = fmt::format("leaky-relu {}", of.number("negative_slope", 0.01))};
}

using translate = layer_text (*)(const translated_call&);

const std::map<std::string, translate, std::less<>>& table() {
  static const std::map<std::string, translate, std::less<>> known{
      {"conv2d", convolution},
      {"linear", linear},
      {"batch_norm", batch_norm},
      {"group_norm", group_norm},
      {"layer_norm", layer_norm},
      {"rms_norm", rms_norm},
      {"embedding", embedding},
      {"lstm", lstm},
      {"max_pool2d", max_pool},
      {"avg_pool2d", average_pool},
      {"adaptive_avg_pool2d", adaptive_pool},
      {"mean", mean},
      {"dropout", dropout},
      {"select", one_token},
      {"slice", full_slice},
      {"view", reshaped},
      {"reshape", reshaped},
      {"flatten", reshaped},
      {"squeeze", reshaped},
      {"hardtanh", clipped},
      {"gelu", gelu},
      {"elu", elu},
      {"softplus", softplus},
      {"leaky_relu", leaky_relu},
  };
  return known;
}

/// True for operators that are a layer of the same name, and for operators that return their input.
bool is_function_of_values(const std::string& name) {
  static const std::set<std::string> names{"relu",  "sigmoid",   "tanh",        "silu",
                                           "relu6", "hardswish", "hardsigmoid", "mish"};
  return names.contains(name);
}
bool is_identity(const std::string& name) { return name == "contiguous" || name == "clone" || name == "alias"; }

layer_text text_of(const translated_call& of) {
  const auto name = plain_name(of.call);
  if (is_function_of_values(name))
    return {.text = name};
  if (is_identity(name))
    return {};
  const auto known = table().find(name);
  if (known == table().end())
    throw no_layer("none of mneme's layers computes it");
  return known->second(of);
}

} // namespace

bool has_weights(const std::string& layer) {
  return layer.find(": ") != std::string::npos || layer.starts_with("patch-embedding");
}

layer_text layer_of_call(const graph_view& graph, std::int32_t slot, bool training) {
  const auto* const call = graph.producer(slot);
  if (call == nullptr)
    throw no_layer("no call computes it");
  const translated_call of{graph, *call, slot, training};
  if (of.input() < 0 && call->name != "embedding")
    throw no_layer("it reads no other layer");
  auto made = text_of(of);
  if (made.input < 0)
    made.input = of.input();
  return made;
}

} // namespace mneme

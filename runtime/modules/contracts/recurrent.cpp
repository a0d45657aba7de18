#include "runtime/modules/contracts/call_errors.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme::contracts {
namespace {

constexpr std::int64_t layers_max = 64;

/// Sizes of a recurrent call, derived from its arguments.
struct recurrent_sizes {
  std::int64_t gates = 1; ///< Gates per weight: 4 for an LSTM, 3 for a GRU, 1 for a plain RNN cell.
  std::int64_t layers = 0, directions = 1;
  std::int64_t batch = 0;     ///< Number of rows in each state.
  std::int64_t features = 0;  ///< Width of the first layer's input.
  std::int64_t hidden = 0;    ///< Width of a cell.
  std::int64_t projected = 0; ///< Output width of a layer; equals `hidden` without a projection.
  bool biases = false;
};

bool is_packed(const operator_call& call) { return call.schema.argumentIndexWithName("batch_sizes").has_value(); }

/// Checks that the step sizes of a packed sequence never increase and sum up to the number of rows.
std::string packed_error(const at::Tensor& rows, const at::Tensor& batch_sizes) {
  if (rows.dim() != 2 || !batch_sizes.defined() || batch_sizes.dim() != 1 || batch_sizes.scalar_type() != at::kLong ||
      batch_sizes.numel() < 1)
    return fmt::format("packed rows are {} with batch_sizes {}; expected [N, F] and a list of integers",
                       shape_text(rows), shape_text(batch_sizes));
  const auto sizes = batch_sizes.cpu().contiguous();
  const auto* const size = sizes.const_data_ptr<std::int64_t>();
  std::int64_t left = rows.size(0);
  for (std::int64_t step = 0; step < sizes.numel(); ++step) {
    if (size[step] < 1 || size[step] > left || (step > 0 && size[step] > size[step - 1]))
      return fmt::format("batch_sizes of {} packed rows has {} at step {}; expected numbers that fall and add up to "
                         "the rows",
                         rows.size(0), size[step], step);
    left -= size[step];
  }
  return left == 0 ? "" : fmt::format("batch_sizes leaves {} of {} packed rows out", left, rows.size(0));
}

/// The number of rows B that the states must have for these inputs.
std::int64_t rows_of_states(const operator_call& call, const at::Tensor& rows) {
  if (is_packed(call))
    return call.tensor("batch_sizes")[0].item<std::int64_t>();
  return rows.size(call.flag("batch_first") ? 0 : 1);
}

/// The states "hx": two tensors for an LSTM, one tensor for other cells.
std::vector<at::Tensor> states_of(const operator_call& call) {
  auto states = call.tensors("hx");
  if (const auto state = call.tensor("hx"); state.defined())
    states.push_back(state);
  return states;
}

std::string states_error(const std::vector<at::Tensor>& states, const recurrent_sizes& sizes, at::ScalarType type) {
  const auto layers = sizes.layers * sizes.directions;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto width = i == 0 ? sizes.projected : sizes.hidden;
    if (states[i].sizes() != at::IntArrayRef({layers, sizes.batch, width}) || states[i].scalar_type() != type)
      return fmt::format("state {} is {} {}; expected {} [{}, {}, {}] for its rows", i,
                         c10::toString(states[i].scalar_type()), shape_text(states[i]), c10::toString(type), layers,
                         sizes.batch, width);
  }
  return "";
}

/// Expected shape of weight `place` (input, state, two biases, projection) of a layer and direction.
std::vector<std::int64_t> weight_shape(const recurrent_sizes& sizes, std::int64_t layer, std::int64_t place) {
  const auto rows = sizes.gates * sizes.hidden;
  if (place == 0)
    return {rows, layer == 0 ? sizes.features : sizes.directions * sizes.projected};
  if (place == 1)
    return {rows, sizes.projected};
  return sizes.biases && place < 4 ? std::vector{rows} : std::vector{sizes.projected, sizes.hidden};
}

std::string weights_error(const std::vector<at::Tensor>& weights, const recurrent_sizes& sizes, at::ScalarType type) {
  const auto each = (sizes.biases ? 4 : 2) + (sizes.projected != sizes.hidden ? 1 : 0);
  const auto expected = sizes.layers * sizes.directions * each;
  if (std::ssize(weights) != expected)
    return fmt::format("it has {} weights; expected {} for {} layers and {} directions", weights.size(), expected,
                       sizes.layers, sizes.directions);
  for (std::int64_t i = 0; i < expected; ++i) {
    const auto& weight = weights[static_cast<std::size_t>(i)];
    const auto shape = weight_shape(sizes, i / (each * sizes.directions), i % each);
    if (weight.sizes() != at::IntArrayRef(shape) || weight.scalar_type() != type)
      return fmt::format("weight {} is {} {}; expected {} [{}] for its states", i, c10::toString(weight.scalar_type()),
                         shape_text(weight), c10::toString(type), fmt::join(shape, ", "));
  }
  return "";
}

} // namespace

/// torch.nn checks these shapes, but the kernels do not. oneDNN writes one state per input row without a bounds check
/// (pytorch#173946).
std::string recurrent_error(const operator_call& call) {
  const auto rows = call.tensor(is_packed(call) ? "data" : "input");
  const auto states = states_of(call);
  const bool is_lstm = call.name() == "aten::lstm";
  if (!rows.defined() || rows.dim() != (is_packed(call) ? 2 : 3) || rows.numel() == 0)
    return call_error(call, fmt::format("its rows are {}; expected [T, B, F], none of them 0", shape_text(rows)));
  if (is_packed(call))
    if (const auto error = packed_error(rows, call.tensor("batch_sizes")); !error.empty())
      return call_error(call, error);
  if (states.size() != (is_lstm ? 2U : 1U) || states.front().dim() != 3 || states.back().dim() != 3)
    return call_error(call, fmt::format("it has {} states of three axes; expected {}", states.size(), is_lstm ? 2 : 1));
  const recurrent_sizes sizes{.gates = is_lstm                      ? 4
                                       : call.name() == "aten::gru" ? 3
                                                                    : 1,
                              .layers = call.integer("num_layers").value_or(0),
                              .directions = call.flag("bidirectional") ? 2 : 1,
                              .batch = rows_of_states(call, rows),
                              .features = rows.size(-1),
                              .hidden = states.back().size(2),
                              .projected = states.front().size(2),
                              .biases = call.flag("has_biases")};
  if (sizes.layers < 1 || sizes.layers > layers_max)
    return call_error(call, fmt::format("num_layers is {}; expected 1 to {}", sizes.layers, layers_max));
  if (sizes.hidden < 1 || sizes.projected < 1 || sizes.hidden > call_limits::window_max)
    return call_error(call,
                      fmt::format("its states are {} wide; expected 1 to {}", sizes.hidden, call_limits::window_max));
  if (const auto error = states_error(states, sizes, rows.scalar_type()); !error.empty())
    return call_error(call, error);
  const auto error = weights_error(call.tensors("params"), sizes, rows.scalar_type());
  return error.empty() ? "" : call_error(call, error);
}

} // namespace mneme::contracts

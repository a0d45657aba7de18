/// exported_program: the graph of an exported program as a list of operator calls, all checked before the first runs.
#pragma once
#include "runtime/modules/contracts/operator_contracts.hpp"
#include "runtime/modules/exported_archive.hpp"
#include "runtime/modules/module_graph.hpp"
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

// A slot holds one value of a pass, a tensor or an integer. Each slot is written once.

/// An argument that is filled in from slots when the call is made.
struct exported_operand {
  enum class form : std::uint8_t {
    value,            ///< The value of one slot.
    number_tensor,    ///< The value of an integer slot, for an operator that expects a tensor.
    tensors,          ///< A list of tensor slots.
    optional_tensors, ///< A list of tensor slots; an item with slot < 0 is None.
    integers          ///< A list of integer slots; an item with slot < 0 is `constant`.
  };
  struct item {
    std::int32_t slot = -1;
    std::int64_t constant = 0;
  };
  std::size_t place = 0; ///< Index of the argument in the schema.
  form kind = form::value;
  std::vector<item> items{};
};

enum class call_kind : std::uint8_t {
  operation,  ///< An operator of LibTorch that needs no special treatment.
  size,       ///< Reads the size of an axis as an integer.
  arithmetic, ///< Integer arithmetic on sizes.
  batch_norm, ///< A norm that updates running statistics in training mode.
  dropout,    ///< dropout or feature_dropout.
  draw,       ///< bernoulli_, which stochastic depth calls in training mode.
  attention,  ///< scaled_dot_product_attention, with optional dropout of attention weights.
  recurrent   ///< lstm, gru or rnn, with optional dropout between layers.
};

struct exported_call {
  call_kind kind = call_kind::operation;
  std::string name{};  ///< Operator name without namespace: "conv2d".
  std::string place{}; ///< "conv2d.default (conv2d_1)", for errors.
  std::optional<c10::OperatorHandle> op{};
  const operator_contract* contract = nullptr;
  std::vector<c10::IValue> arguments{};
  std::vector<exported_operand> operands{};
  std::vector<std::int32_t> results{};   ///< Slots that receive the results.
  std::vector<std::int32_t> last_read{}; ///< Slots that no later call reads; released after this call.
  bool returns_list = false;             ///< True: the results are the items of one list.
  bool writes_buffer = false;            ///< True: the call updates a buffer, so it runs in training mode only.
  std::vector<std::int32_t> written{};   ///< Slots of the buffers that the call updates.
  bool is_uninitialized = false;         ///< True: the operator returns uninitialized memory, which is then set to 0.
  int mode_argument = -1;             ///< Index of a `train` or `training` flag that is true in the file; -1 if none.
  int rate_argument = -1;             ///< Index of a rate above 0 that is used in training mode only; -1 if there is
                                      ///< none.
  std::int64_t first_draw = 0;        ///< Index of the call's first random mask within the pass.
  std::size_t mean = 0, variance = 0; ///< batch_norm: indices of its running statistics in `tensors`.

  /// True if training mode and evaluation mode differ for this call.
  [[nodiscard]] bool has_mode() const noexcept { return mode_argument >= 0 || rate_argument >= 0; }
  /// True for in-place operators, such as dropout_.
  [[nodiscard]] bool writes_argument() const noexcept { return name.ends_with("_"); }
};

struct exported_program {
  /// A slot that holds a parameter, buffer or constant. Tied weights fill several slots with one tensor.
  struct held_slot {
    std::int32_t slot = -1;
    std::size_t tensor = 0;
  };
  std::vector<module_graph::held_tensor> tensors{};
  std::vector<held_slot> held{};
  std::vector<exported_call> calls{};
  std::vector<std::int64_t> own_rows{};  ///< Values of the buffer `rows`; empty if there is none.
  std::vector<std::int64_t> row_sizes{}; ///< Shape of the rows in the export; -1 for a size that may vary.
  std::int64_t fixed_rows = 0;           ///< Fixed batch size of the export; 0 if it is dynamic.
  std::int32_t rows_slot = -1, result_slot = -1, slots = 0;
  std::int64_t draws = 0;      ///< Number of random masks per pass in training mode.
  std::string unseeded_draw{}; ///< A call that uses LibTorch's own generator in training mode; "" if there is none.
};

/// Converts and checks the program. Throws exported_error or nlohmann::json::exception if one of these rules is
/// violated:
/// - Operators are allowed, and their arguments match their schemas.
/// - Values are computed before they are read, and parameters are never written.
/// - Shapes of results do not depend on tensor values. Evaluation mode draws no random numbers.
/// - forward() takes one tensor and returns one.
[[nodiscard]] exported_program read_exported_program(const exported_archive& archive, const at::Device& device);

} // namespace mneme

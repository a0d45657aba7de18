/// exported_program: the graph of an exported program as a list of operator calls, checked before any of them runs.
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

// A slot holds one value of a pass: a tensor or an integer. Every slot is written once.

/// An argument, or a part of a list argument, that is known only when the call is made.
struct exported_operand {
  enum class form : std::uint8_t {
    value,            ///< One slot.
    number_tensor,    ///< An integer slot where the operator takes a tensor.
    tensors,          ///< A list of tensors.
    optional_tensors, ///< A list of tensors; slot < 0: None.
    integers          ///< A list of integers; slot < 0: `constant`.
  };
  struct item {
    std::int32_t slot = -1;
    std::int64_t constant = 0;
  };
  std::size_t place = 0; ///< Of the argument, in the schema's order.
  form kind = form::value;
  std::vector<item> items{};
};

enum class call_kind : std::uint8_t {
  operation,  ///< An operator of LibTorch.
  size,       ///< The size of an axis: an integer.
  arithmetic, ///< A sum, product and so on of integers.
  batch_norm, ///< An operator that moves running statistics in training.
  dropout,    ///< dropout, feature_dropout
  draw,       ///< bernoulli_, as stochastic depth calls it in training.
  attention,  ///< scaled_dot_product_attention, which may drop attention weights.
  recurrent   ///< lstm, gru, rnn, which may drop values between layers.
};

struct exported_call {
  call_kind kind = call_kind::operation;
  std::string name{};  ///< "conv2d"
  std::string place{}; ///< "conv2d.default (conv2d_1)", for errors.
  std::optional<c10::OperatorHandle> op{};
  const operator_contract* contract = nullptr;
  std::vector<c10::IValue> arguments{};
  std::vector<exported_operand> operands{};
  std::vector<std::int32_t> results{};   ///< Slots.
  std::vector<std::int32_t> last_read{}; ///< Slots that no later call reads.
  bool returns_list = false;             ///< The results are the parts of one list.
  bool writes_buffer = false;            ///< Runs in training only.
  bool is_uninitialized = false;         ///< The result is memory that nothing has written: it is set to 0.
  int mode_argument = -1;                ///< A flag `train` or `training` that is true in the file.
  int rate_argument = -1;                ///< A rate above 0 with which it drops, or draws, values in training.
  std::int64_t first_draw = 0;           ///< The number of the first mask that it draws.
  std::size_t mean = 0, variance = 0;    ///< batch_norm: its running statistics among the tensors.

  /// True if training differs from evaluation.
  [[nodiscard]] bool has_mode() const noexcept { return mode_argument >= 0 || rate_argument >= 0; }
  /// True for dropout_ and the like.
  [[nodiscard]] bool writes_argument() const noexcept { return name.ends_with("_"); }
};

struct exported_program {
  /// A tensor that calls read. Tied weights are one tensor in several slots.
  struct held_slot {
    std::int32_t slot = -1;
    std::size_t tensor = 0;
  };
  std::vector<module_graph::held_tensor> tensors{};
  std::vector<held_slot> held{};
  std::vector<exported_call> calls{};
  std::vector<std::int64_t> own_rows{}; ///< The values of a buffer `rows`.
  std::int64_t fixed_rows = 0;          ///< Rows of the call that was exported; 0: any number.
  std::int32_t rows_slot = -1, result_slot = -1, slots = 0;
  std::int64_t draws = 0;      ///< Masks that a pass in training mode draws.
  std::string unseeded_draw{}; ///< A call whose draws in training follow from no key; "" if there is none.
};

/// Throws exported_error, or nlohmann::json::exception, if a call is not one of an allowed operator with arguments of
/// its schema, a value is read before it is computed, a parameter is written, the shape of a result depends on values,
/// random numbers are drawn in evaluation mode, or forward() takes and returns more than one tensor.
[[nodiscard]] exported_program read_exported_program(const exported_archive& archive, const at::Device& device);

} // namespace mneme

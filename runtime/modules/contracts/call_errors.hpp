/// call_errors: the contracts that find_contract() returns, grouped by subject. Each function returns the reason to
/// reject a call, or "".
#pragma once
#include "runtime/modules/contracts/operator_call.hpp"
namespace mneme::contracts {

/// Limits on the arguments and results of one call.
struct call_limits {
  static constexpr std::int64_t step_max = 4096; ///< Strides, dilations and similar arguments of a convolution.
  static constexpr std::int64_t window_max = std::int64_t{1} << 24;  ///< Kernels, strides, paddings of other operators.
  static constexpr std::int64_t numbers_max = std::int64_t{1} << 31; ///< Elements of a tensor.
  static constexpr std::int64_t parts_max = std::int64_t{1} << 16;   ///< Tensors that one call returns.
  static constexpr double scale_max = 4096.0; ///< Largest scale factor of resizing; the smallest is its inverse.
};

// attention.cpp
std::string attention_error(const operator_call& call);
std::string multi_head_attention_error(const operator_call& call);

// recurrent.cpp: lstm, gru, rnn_tanh, rnn_relu
std::string recurrent_error(const operator_call& call);

// windows.cpp
std::string convolution_error(const operator_call& call);
std::string pooling_error(const operator_call& call);
std::string padding_error(const operator_call& call);
std::string resizing_error(const operator_call& call);
std::string sampling_error(const operator_call& call);

// normalization.cpp
std::string normalization_error(const operator_call& call);

// integers.cpp
std::string division_error(const operator_call& call);
std::string shift_error(const operator_call& call);
std::string repeats_error(const operator_call& call);

// result_sizes.cpp
std::string result_size_error(const operator_call& call);
std::string parts_error(const operator_call& call);
std::int64_t parts_bytes(const operator_call& call);

} // namespace mneme::contracts

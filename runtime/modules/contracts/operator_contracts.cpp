#include "runtime/modules/contracts/operator_contracts.hpp"
#include "runtime/modules/contracts/call_errors.hpp"
#include <algorithm>
#include <map>
namespace mneme {
namespace {

using namespace contracts;
using contract_table = std::map<std::string, operator_contract, std::less<>>;

void add_contract(contract_table& table, std::string_view names, const operator_contract& contract) {
  for (std::size_t first = 0; first < names.size();) {
    const auto end = std::min(names.find(' ', first), names.size());
    table.emplace("aten::" + std::string(names.substr(first, end - first)), contract);
    first = end + 1;
  }
}

contract_table every_contract() {
  contract_table table;
  add_contract(table, "scaled_dot_product_attention", {attention_error});
  add_contract(table, "_native_multi_head_attention", {multi_head_attention_error});
  add_contract(table, "lstm gru rnn_tanh rnn_relu", {recurrent_error});
  add_contract(table,
               "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution",
               {convolution_error});
  add_contract(table,
               "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
               "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
               "im2col col2im max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices",
               {pooling_error});
  add_contract(table,
               "pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
               "replication_pad2d replication_pad3d",
               {padding_error});
  add_contract(table,
               "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d "
               "upsample_bicubic2d upsample_trilinear3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
               "_upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa",
               {resizing_error});
  add_contract(table, "grid_sampler grid_sampler_2d grid_sampler_3d", {sampling_error});
  add_contract(table,
               "batch_norm native_batch_norm instance_norm _native_batch_norm_legit "
               "_native_batch_norm_legit_functional _native_batch_norm_legit_no_training",
               {normalization_error});
  add_contract(table, "div div_ floor_divide floor_divide_ remainder remainder_ fmod fmod_ gcd", {division_error});
  add_contract(table, "__lshift__ __rshift__", {shift_error});
  add_contract(table, "repeat_interleave", {repeats_error});
  add_contract(table,
               "expand broadcast_to repeat tile zeros ones full empty new_zeros new_ones new_full new_empty arange "
               "linspace logspace eye one_hot",
               {result_size_error});
  add_contract(table, "unbind split split_with_sizes chunk tensor_split", {parts_error, parts_bytes});
  return table;
}

/// True division needs no contract, although its name is in the table.
bool is_true_division(const c10::FunctionSchema& schema) {
  return schema.name().starts_with("aten::div") && !schema.argumentIndexWithName("rounding_mode");
}

} // namespace

const operator_contract* find_contract(const c10::FunctionSchema& schema) {
  static const auto table = every_contract();
  const auto place = table.find(schema.name());
  return place == table.end() || is_true_division(schema) ? nullptr : &place->second;
}

} // namespace mneme

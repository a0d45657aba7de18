#include "runtime/modules/contracts/call_errors.hpp"
#include <fmt/format.h>
namespace mneme::contracts {
namespace {

bool share_leading_axes(const at::Tensor& keys, const at::Tensor& values) {
  return keys.dim() == values.dim() && keys.sizes().slice(0, keys.dim() - 1) == values.sizes().slice(0, keys.dim() - 1);
}

/// True if the mask broadcasts to the attention scores. The size of its last axis is 1 or the number of keys. The size
/// of every other axis is 1 or the size of this axis in the queries.
bool mask_fits(const at::Tensor& mask, const at::Tensor& queries, const at::Tensor& keys) {
  for (std::int64_t axis = 1; axis <= mask.dim(); ++axis) {
    const auto expected = axis == 1 ? keys.size(-2) : axis <= queries.dim() ? queries.size(-axis) : 1;
    if (mask.size(-axis) != 1 && mask.size(-axis) != expected)
      return false;
  }
  return true;
}

std::string grouped_heads_error(const at::Tensor& queries, const at::Tensor& keys) {
  if (queries.dim() < 3 || keys.dim() < 3)
    return "";
  const auto groups = keys.size(-3), heads = queries.size(-3);
  return groups < 1 || heads % groups != 0
             ? fmt::format("{} heads of queries and {} of keys; expected a multiple (enable_gqa)", heads, groups)
             : "";
}

} // namespace

/// The fused kernel reads one key per value without a check (pytorch#193728) and divides by the number of key heads.
std::string attention_error(const operator_call& call) {
  const auto queries = call.tensor("query"), keys = call.tensor("key"), values = call.tensor("value");
  const auto mask = call.tensor("attn_mask");
  if (!queries.defined() || !keys.defined() || !values.defined() || queries.dim() < 2 || keys.dim() < 2)
    return call_error(call, "queries, keys and values have fewer than two axes");
  if (!share_leading_axes(keys, values))
    return call_error(call, fmt::format("keys are {} and values {}; expected the same shape but for the last axis",
                                        shape_text(keys), shape_text(values)));
  if (queries.size(-1) != keys.size(-1))
    return call_error(call, fmt::format("queries are {} and keys {}; expected the same last axis", shape_text(queries),
                                        shape_text(keys)));
  if (mask.defined() && !mask_fits(mask, queries, keys))
    return call_error(call,
                      fmt::format("the mask is {} for queries {} and keys {}; expected [..., {}, {}]", shape_text(mask),
                                  shape_text(queries), shape_text(keys), queries.size(-2), keys.size(-2)));
  if (call.flag("enable_gqa"))
    if (const auto error = grouped_heads_error(queries, keys); !error.empty())
      return call_error(call, error);
  return "";
}

/// The kernel divides by the number of heads and assumes without a check that the output projection is [D, D].
std::string multi_head_attention_error(const operator_call& call) {
  const auto queries = call.tensor("query");
  const auto width = call.integer("embed_dim").value_or(0), heads = call.integer("num_head").value_or(0);
  if (!queries.defined() || queries.dim() != 3 || queries.size(2) != width || width < 1)
    return call_error(call, fmt::format("queries are {}; expected [B, T, {}]", shape_text(queries), width));
  if (heads < 1 || width % heads != 0)
    return call_error(call, fmt::format("num_head is {}; expected a divisor of the width {}", heads, width));
  for (const auto* const other : {"key", "value"})
    if (const auto tensor = call.tensor(other); !tensor.defined() || tensor.sizes() != queries.sizes())
      return call_error(call, fmt::format("{} is {} and query {}; expected the same shape", other, shape_text(tensor),
                                          shape_text(queries)));
  const auto has_shape = [&](std::string_view argument, at::IntArrayRef expected) {
    const auto tensor = call.tensor(argument);
    return tensor.defined() && tensor.sizes() == expected;
  };
  if (!has_shape("qkv_weight", {3 * width, width}) || !has_shape("qkv_bias", {3 * width}) ||
      !has_shape("proj_weight", {width, width}) || !has_shape("proj_bias", {width}))
    return call_error(call,
                      fmt::format("its weights are {}, {}, {} and {}; expected those of the width {}",
                                  shape_text(call.tensor("qkv_weight")), shape_text(call.tensor("qkv_bias")),
                                  shape_text(call.tensor("proj_weight")), shape_text(call.tensor("proj_bias")), width));
  return "";
}

} // namespace mneme::contracts

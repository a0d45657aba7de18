#include "runtime/modules/allowed_operators.hpp"
#include <algorithm>
#include <string>
#include <unordered_set>
namespace mneme {
namespace {

/// Names of the allowed operators, grouped by topic.
constexpr std::string_view tensor_operators =
    // layers
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d _convolution convolution linear bilinear "
    "batch_norm layer_norm group_norm instance_norm local_response_norm rms_norm embedding "
    "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d scaled_dot_product_attention _native_multi_head_attention lstm gru rnn_tanh rnn_relu "
    "lstm_cell "
    "gru_cell pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im grid_sampler affine_grid_generator pad "
    "constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d "
    "upsample_trilinear3d _upsample_nearest_exact2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa "
    "dropout dropout_ feature_dropout feature_dropout_ alpha_dropout alpha_dropout_ feature_alpha_dropout "
    // activations
    "relu relu_ relu6 relu6_ leaky_relu leaky_relu_ prelu rrelu elu elu_ selu selu_ celu celu_ gelu gelu_ silu silu_ "
    "mish mish_ glu hardtanh hardtanh_ hardsigmoid hardsigmoid_ hardswish hardswish_ hardshrink softshrink threshold "
    "threshold_ softplus sigmoid sigmoid_ log_sigmoid tanh tanh_ softmax log_softmax _softmax _log_softmax softmin "
    // element-wise arithmetic
    "add add_ sub sub_ rsub mul mul_ div div_ true_divide floor_divide floor_divide_ remainder fmod pow pow_ square "
    "square_ sqrt sqrt_ rsqrt rsqrt_ exp exp_ exp2 expm1 log log_ log2 log10 log1p sin cos tan asin acos atan atan2 "
    "sinh "
    "cosh abs abs_ neg neg_ sign reciprocal reciprocal_ round round_ floor floor_ ceil ceil_ trunc frac clamp clamp_ "
    "clamp_min clamp_min_ clamp_max clamp_max_ lerp addcmul addcdiv erf erfc erfinv logaddexp logit nan_to_num maximum "
    "minimum fmax fmin where masked_fill masked_fill_ "
    "eq ne lt le gt ge isnan isinf isfinite isclose equal allclose logical_and logical_or logical_xor logical_not "
    "bitwise_and bitwise_or bitwise_xor bitwise_not "
    // reductions, products, sorting
    "matmul mm bmm mv dot addmm addmm_ addmv addbmm baddbmm einsum tensordot outer ger kron inner "
    "sum mean prod var std var_mean std_mean amax amin aminmax max min median logsumexp norm linalg_norm "
    "linalg_vector_norm linalg_matrix_norm frobenius_norm cosine_similarity pairwise_distance cdist dist all "
    "any argmax argmin argsort sort topk cumsum cumprod cummax cummin diff count_nonzero nansum trace cross tril triu "
    "tril_ triu_ bucketize searchsorted histc one_hot "
    // shape and layout
    "view view_as reshape reshape_as flatten unflatten squeeze squeeze_ unsqueeze unsqueeze_ transpose transpose_ "
    "permute t t_ numpy_T mT movedim moveaxis swapaxes swapdims expand expand_as repeat repeat_interleave tile roll "
    "flip "
    "fliplr flipud rot90 cat concat concatenate stack hstack vstack dstack split split_with_sizes chunk tensor_split "
    "unbind narrow select slice index index_select index_add index_fill index_copy index_put index_put_ gather scatter "
    "scatter_ scatter_add scatter_add_ take take_along_dim masked_select masked_scatter diagonal diag diag_embed "
    "unfold "
    "broadcast_tensors broadcast_to atleast_1d atleast_2d atleast_3d meshgrid contiguous clone detach detach_ alias "
    "copy_ fill_ zero_ to _to_copy lift_fresh_copy type_as float double half int long bool cpu resolve_conj "
    "resolve_neg "
    // tensor creation and tensor properties
    "zeros empty ones full zeros_like ones_like full_like new_zeros new_ones new_full arange linspace logspace eye "
    "tensor "
    "as_tensor scalar_tensor size sym_size stride dim numel sym_numel ndimension is_floating_point is_complex "
    "is_contiguous item result_type _shape_as_tensor "
    // bits and other numbers
    "__and__ __or__ __xor__ __iand__ __ior__ __lshift__ __rshift__ copysign gcd hypot "
    // random numbers; a program that would draw them in evaluation mode is rejected
    "rand rand_like randn randn_like randint randperm bernoulli bernoulli_ uniform_ normal normal_ multinomial "
    "exponential_ random_ poisson";

std::unordered_set<std::string> names_of_operators() {
  std::unordered_set<std::string> names;
  for (std::size_t first = 0; first < tensor_operators.size();) {
    const auto end = std::min(tensor_operators.find(' ', first), tensor_operators.size());
    names.emplace(tensor_operators.substr(first, end - first));
    first = end + 1;
  }
  return names;
}

} // namespace

bool is_allowed_operator(std::string_view name) {
  static const auto names = names_of_operators();
  return names.contains(std::string(name));
}

} // namespace mneme

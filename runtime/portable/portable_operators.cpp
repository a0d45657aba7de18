#include "runtime/portable/portable_operators.hpp"
#include "runtime/base/arithmetic.hpp"
#include "runtime/portable/convolutions.hpp"
#include "runtime/portable/decompositions.hpp"
#include "runtime/portable/functions.hpp"
#include "runtime/portable/product_operators.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>
namespace mneme::portable {
namespace {

// Operators whose kernels are LibTorch's own loops. ATEN_CPU_CAPABILITY selects the compiled version of each. None of
// them calls MKL, oneDNN or LAPACK, reads the processor's cache sizes, or splits its work when there is one thread.
// Each name also stands for the in-place variant, whose name ends in "_".
constexpr std::string_view fixed_operators =
    // elementwise operators that round once, or several times in a fixed order
    "add sub rsub mul div floor_divide remainder fmod pow square rsqrt abs neg sign signbit sgn reciprocal round "
    "floor ceil trunc frac clamp clamp_min clamp_max lerp addcmul addcdiv maximum minimum fmax fmin where masked_fill "
    "eq ne lt le gt ge isnan isinf isposinf isneginf isfinite isin equal logical_and logical_or logical_xor "
    "logical_not "
    "bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ "
    "__lshift__ __rshift__ __iand__ __ior__ nan_to_num copysign heaviside gcd lcm xlogy hypot logaddexp logit atan2 "
    "polar relu leaky_relu leaky_relu_backward threshold threshold_backward hardtanh hardtanh_backward hardsigmoid "
    "hardsigmoid_backward hardswish hardswish_backward elu elu_backward softplus softplus_backward sigmoid "
    "sigmoid_backward tanh_backward silu silu_backward gelu gelu_backward mish mish_backward log_sigmoid_forward "
    "log_sigmoid_backward hardshrink hardshrink_backward softshrink softshrink_backward prelu _prelu_kernel "
    "_prelu_kernel_backward glu glu_backward celu _log_softmax _softmax _safe_softmax _log_softmax_backward_data "
    "_softmax_backward_data logsumexp "
    // reductions and sorting
    "sum nansum mean prod var std var_mean std_mean norm linalg_vector_norm amax amin aminmax max min argmax argmin "
    "median nanmedian all any cumsum cumprod cummax cummin _cummax_helper _cummin_helper sort argsort topk kthvalue "
    "mode _unique cholesky_solve unique_dim _unique2 unique_consecutive bincount histc bucketize searchsorted trace "
    "count_nonzero nonzero "
    "nonzero_static renorm dist _cdist_forward _pdist_forward addr tril triu tril_indices triu_indices cross "
    "linalg_cross diag_embed "
    // losses, normalization, pooling, interpolation
    "nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward mse_loss mse_loss_backward "
    "smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward binary_cross_entropy "
    "binary_cross_entropy_backward binary_cross_entropy_with_logits soft_margin_loss multi_margin_loss "
    "native_batch_norm native_batch_norm_backward _native_batch_norm_legit "
    "_native_batch_norm_legit_functional _native_batch_norm_legit_no_training _batch_norm_with_update "
    "_batch_norm_no_update batch_norm_backward batch_norm_update_stats native_layer_norm native_layer_norm_backward "
    "native_group_norm native_group_norm_backward max_pool2d_with_indices max_pool2d_with_indices_backward "
    "avg_pool2d avg_pool2d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_avg_pool2d "
    "adaptive_max_pool2d adaptive_max_pool2d_backward upsample_nearest1d upsample_nearest1d_backward "
    "upsample_nearest2d upsample_nearest2d_backward _upsample_nearest_exact2d _upsample_nearest_exact2d_backward "
    "upsample_bilinear2d upsample_bilinear2d_backward _upsample_bilinear2d_aa upsample_linear1d grid_sampler_2d "
    "grid_sampler_2d_backward embedding_dense_backward embedding_renorm im2col col2im "
    // views, indexing and copies
    "view _unsafe_view _reshape_alias _reshape_copy alias as_strided detach expand permute transpose t squeeze "
    "unsqueeze select slice "
    "narrow split split_with_sizes unbind diagonal unfold unfold_backward slice_backward select_backward "
    "diagonal_backward slice_scatter select_scatter diagonal_scatter as_strided_scatter cat _cat stack hstack vstack "
    "index index_put _index_put_impl _unsafe_index _unsafe_index_put _unsafe_masked_index "
    "_unsafe_masked_index_put_accumulate index_select index_add index_copy index_fill index_reduce gather scatter "
    "scatter_add scatter_reduce take put masked_select masked_scatter masked_scatter_backward embedding repeat "
    "repeat_interleave roll flip rot90 constant_pad_nd reflection_pad1d reflection_pad1d_backward reflection_pad2d "
    "reflection_pad2d_backward replication_pad1d replication_pad2d replication_pad2d_backward "
    "value_selecting_reduction_backward clone copy _to_copy to contiguous copy_ fill zero set resize resize_as "
    "_resize_output set_data lift lift_fresh lift_fresh_copy _copy_from _copy_from_and_resize view_copy "
    "view_as_real view_as_complex _conj _neg_view resolve_conj pixel_shuffle pixel_unshuffle channel_shuffle "
    "block_diag "
    "_fused_dropout isclose allclose "
    // creation, properties and random numbers
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros "
    "_efficientzerotensor ones ones_like new_ones "
    "full full_like new_full arange linspace eye scalar_tensor _local_scalar_dense is_same_size is_set_to _nnz size "
    "stride "
    "is_pinned _pin_memory storage_offset _version data randperm uniform normal random";

/// Removes "aten::" and the "_" of in-place operators: "aten::add_" is "add".
std::string plain_name(std::string_view name) {
  constexpr std::string_view space = "aten::";
  if (name.starts_with(space))
    name.remove_prefix(space.size());
  if (name.ends_with('_') && !name.ends_with("__"))
    name.remove_suffix(1);
  return std::string(name);
}

const std::unordered_set<std::string>& fixed_names() {
  static const auto names = [] {
    std::unordered_set<std::string> words;
    for (std::size_t first = 0; first < fixed_operators.size();) {
      const auto end = std::min(fixed_operators.find(' ', first), fixed_operators.size());
      words.insert(plain_name(fixed_operators.substr(first, end - first)));
      first = end + 1;
    }
    return words;
  }();
  return names;
}

using held_registrations = std::vector<c10::RegistrationHandleRAII>;
/// Never destroyed, because other static objects may still compute while the process exits.
held_registrations& held() {
  static auto* const kept = new held_registrations;
  return *kept;
}
std::set<std::pair<std::string, std::string>>& replaced() {
  static auto* const kept = new std::set<std::pair<std::string, std::string>>;
  return *kept;
}

void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  throw std::runtime_error("'" + op.operator_name().name +
                           "' may compute other bits on another machine, so it is not part of portable arithmetic; use "
                           "worker.arithmetic = \"machine\"");
}

/// Suppresses LibTorch's warnings about replaced kernels.
class silence final : public c10::WarningHandler {
public:
  void process(const c10::Warning& /*warning*/) override {}
};

bool computes_on_cpu(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

void register_refused_operators() {
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::") || is_portable_operator(name.name) || is_replaced_kernel(name))
      continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && computes_on_cpu(*op))
      replace_kernel(name.name, name.overload_name, c10::KernelFunction::makeFromBoxedFunction<&refuse>());
  }
}

} // namespace

void replace_kernel(const std::string& name, const std::string& overload, c10::KernelFunction kernel,
                    std::optional<c10::impl::CppSignature> arguments) {
  held().push_back(c10::Dispatcher::singleton().registerImpl({name, overload}, c10::DispatchKey::CPU, std::move(kernel),
                                                             arguments, nullptr, "portable arithmetic"));
  replaced().emplace(name, overload);
}

bool is_replaced_kernel(const c10::OperatorName& name) { return replaced().contains({name.name, name.overload_name}); }

bool is_portable_operator(std::string_view name) { return fixed_names().contains(plain_name(name)); }

void use_portable_operators() {
  static const bool done = [] {
    silence none;
    const c10::WarningUtils::WarningHandlerGuard quiet(&none);
    register_products();
    register_convolutions();
    register_functions();
    register_decompositions();
    at::globalContext().setUserEnabledMkldnn(false); // oneDNN's kernels depend on the processor
    at::globalContext().setSDPUseFlash(false);       // attention then consists of products and a softmax
    register_refused_operators();
    return true;
  }();
  static_cast<void>(done);
}

namespace {

const portable_arithmetic_registration line{&use_portable_operators};

} // namespace
} // namespace mneme::portable

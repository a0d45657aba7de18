#include "tools/python/engine/python_loss.hpp"
#include "runtime/base/autograd_on.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include "tools/python/engine/user_errors.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {

// Axes: K models, B rows of a step, R rows with nonzero weight, C classes of the loss.

python_loss::python_loss(nb::object function, std::string name, std::string identity)
    : function_(std::move(function)), name_(std::move(name)), identity_(fmt::format("python {} {}", name_, identity)) {}

python_loss::~python_loss() {
  const held_gil held;
  function_.reset();
}

loss_output python_loss::operator()(const loss_input& in) const {
  loss_output out{.values = at::zeros({in.logits.size(0)}, in.logits.options().dtype(at::kDouble)),
                  .d_logits = at::zeros(in.logits.sizes(), in.logits.options())};
  for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
    const auto counted = (in.row_weight.select(0, k) > 0).nonzero().flatten();
    if (counted.numel() == 0)
      continue;
    const autograd_on gradients;
    const auto logits = in.logits.select(0, k).index_select(0, counted).detach().clone().requires_grad_(true); // [R, C]
    const auto labels = in.labels.select(0, k).index_select(0, counted);
    const auto rows = under_gil(name_.c_str(), [&] {
      const nb::object value = function_(torch_wrapped(logits), torch_object(labels));
      return graph_of(value, name_);
    });
    if (rows.dim() != 1 || rows.numel() != counted.numel() || !rows.requires_grad())
      throw std::invalid_argument(fmt::format("the loss '{}' returned a tensor of {} numbers; expected one of each of "
                                              "the {} rows, computed from the logits",
                                              name_, rows.numel(), counted.numel()));
    const auto weight = in.row_weight.select(0, k).index_select(0, counted);
    const auto loss_sum = (rows * weight).sum();
    loss_sum.backward();
    out.values.select(0, k).copy_(loss_sum.detach());
    out.d_logits.select(0, k).index_copy_(0, counted, logits.grad());
  }
  return out;
}

} // namespace mneme

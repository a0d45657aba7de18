#include "tools/python/engine/python_loss.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include "tools/python/engine/user_errors.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {

python_loss::python_loss(nb::object function, std::string name, const std::string& identity)
    : python_loss_name{std::move(name)},
      differentiable_loss({.identity = fmt::format("python {} {}", name_, identity), .terms = {name_.c_str()}},
                          [this](const loss_rows& in) { return row_values(in); }),
      function_(std::move(function)) {}

python_loss::~python_loss() {
  const gil_scope held;
  function_.reset();
}

std::vector<at::Tensor> python_loss::row_values(const loss_rows& in) const {
  const auto rows = under_gil(name_.c_str(), [&] {
    const nb::object value = function_(torch_wrapped(in.logits), torch_object(in.labels));
    return graph_of(value, name_);
  });
  if (rows.dim() != 1 || rows.numel() != in.count() || !rows.requires_grad())
    throw std::invalid_argument(fmt::format("the loss '{}' returned a tensor of {} numbers; expected one loss for each "
                                            "of the {} rows, computed from the logits",
                                            name_, rows.numel(), in.count()));
  return {rows};
}

} // namespace mneme

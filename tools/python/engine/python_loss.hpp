/// python_loss: a loss written in Python, with gradients by torch's autograd, one model at a time.
#pragma once
#include "runtime/method/training.hpp"
#include <nanobind/nanobind.h>
namespace mneme {

namespace nb = nanobind;

/// `function(logits [B, C], labels [B])` returns the loss of each row [B]; it does not get padded rows.
class python_loss final : public loss {
public:
  /// @param identity losses with equal identities are equal and may share a batch
  python_loss(nb::object function, std::string name, std::string identity);
  ~python_loss() override;
  python_loss(const python_loss&) = delete;
  python_loss& operator=(const python_loss&) = delete;
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] const nb::object& function() const noexcept { return function_; }
  [[nodiscard]] const char* main_term() const override { return name_.c_str(); }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override;

private:
  nb::object function_;
  std::string name_, identity_;
};

} // namespace mneme

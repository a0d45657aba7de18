#include "tools/python/engine/torch_tensors.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <stdexcept>
namespace mneme {
namespace {

/// First members of torch.Tensor's memory layout, as in torch/csrc/autograd/python_variable.h.
struct tensor_object {
  PyObject_HEAD at::Tensor tensor;
};
using wrap_function = PyObject* (*)(const at::TensorBase&);

struct torch_parts {
  wrap_function wrap = nullptr;
  PyObject* tensor_type = nullptr; // torch.Tensor; never released
};
torch_parts& parts() {
  static torch_parts known;
  return known;
}

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

/// Converts a number or list to a torch tensor; a float becomes float64. Throws std::invalid_argument that names
/// `meaning`.
nb::object as_tensor(nb::handle object, const std::string& meaning) {
  if (PyObject_IsInstance(object.ptr(), parts().tensor_type) == 1)
    return nb::borrow(object);
  const auto torch = nb::module_::import_("torch");
  if (nb::isinstance<nb::float_>(object))
    return torch.attr("tensor")(nb::make_tuple(object), nb::arg("dtype") = torch.attr("float64"));
  try {
    return torch.attr("as_tensor")(object);
  } catch (nb::python_error&) {
    throw std::invalid_argument(fmt::format("{} is a {}; expected a torch tensor", meaning, class_name(object)));
  }
}

} // namespace

void find_torch() {
  auto* const library = ::dlopen("libtorch_python.so", RTLD_NOLOAD | RTLD_LAZY);
  auto* const wrap = library ? ::dlsym(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE") : nullptr;
  if (!wrap)
    throw std::runtime_error("torch is loaded without its Python part; expected torch 2.11 as pip installs it");
  parts().wrap = reinterpret_cast<wrap_function>(wrap);
  nb::object type = nb::module_::import_("torch").attr("Tensor");
  parts().tensor_type = type.release().ptr();
}

nb::object torch_wrapped(const at::Tensor& value) {
  auto* const object = parts().wrap(value);
  if (!object)
    throw nb::python_error();
  return nb::steal(object);
}

at::Tensor graph_of(nb::handle object, const std::string& meaning) {
  if (PyObject_IsInstance(object.ptr(), parts().tensor_type) != 1)
    throw std::invalid_argument(fmt::format("{} returned a {}; expected a torch tensor", meaning, class_name(object)));
  return reinterpret_cast<const tensor_object*>(object.ptr())->tensor;
}

nb::object torch_object(const at::Tensor& value) {
  if (!value.defined())
    return nb::none();
  const at::Tensor alias(value.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  return torch_wrapped(alias);
}

bool was_written(nb::handle shown) {
  if (PyObject_IsInstance(shown.ptr(), parts().tensor_type) != 1)
    return true; // the object was replaced by another one
  return reinterpret_cast<const tensor_object*>(shown.ptr())->tensor._version() != 0;
}

at::Tensor tensor_of(nb::handle object, const std::string& meaning) {
  const auto held = as_tensor(object, meaning);
  const auto& tensor = reinterpret_cast<const tensor_object*>(held.ptr())->tensor;
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_complex())
    throw std::invalid_argument(meaning + " is a sparse, quantized or complex tensor; expected a dense one of numbers");
  const at::Tensor alias(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  return alias.resolve_conj().resolve_neg().contiguous();
}

namespace {

/// False for NaN and infinity, whose exponent bits are all set.
bool is_finite_number(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u; }

void expect_finite(const at::Tensor& flat, const std::string& meaning) {
  const auto* const first = flat.const_data_ptr<float>();
  const auto* const last = first + flat.numel();
  const auto wrong = std::count_if(first, last, [](float v) { return !is_finite_number(v); });
  if (wrong != 0)
    throw std::invalid_argument(fmt::format("{} has {} values of {} that are not finite, the first at {}", meaning,
                                            wrong, flat.numel(),
                                            std::find_if_not(first, last, is_finite_number) - first));
}

} // namespace

at::Tensor flat_tensor_of(nb::handle object, std::int64_t count, const std::string& meaning) {
  auto tensor = tensor_of(object, meaning);
  if (tensor.scalar_type() != at::kFloat || tensor.dim() != 1 || tensor.numel() != count)
    throw std::invalid_argument(fmt::format("{} is {} of {} axes and {} numbers; expected float32 [{}], the weights of "
                                            "the net in one row",
                                            meaning, c10::toString(tensor.scalar_type()), tensor.dim(), tensor.numel(),
                                            count));
  if (tensor.is_cpu())
    expect_finite(tensor, meaning);
  return tensor;
}

tensor_map tensors_of(nb::handle mapping, const std::string& meaning) {
  tensor_map tensors;
  if (mapping.is_none())
    return tensors;
  if (!PyMapping_Check(mapping.ptr()) || !nb::hasattr(mapping, "items"))
    throw std::invalid_argument(
        fmt::format("{} is a {}; expected a dict of tensors by name", meaning, class_name(mapping)));
  for (auto item : nb::object(mapping.attr("items")())) {
    const nb::object key = item[0], value = item[1];
    const auto name = nb::cast<std::string>(nb::str(key));
    tensors.put(name, tensor_of(value, fmt::format("{}['{}']", meaning, name)));
  }
  return tensors;
}

nb::dict torch_dict(const tensor_map* tensors) {
  nb::dict named;
  if (tensors)
    for (const auto& [name, value] : *tensors)
      named[name.c_str()] = torch_object(value);
  return named;
}

bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b) || (!a.defined() && !b.defined()))
    return true;
  if (!a.defined() || !b.defined() || a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes())
    return false;
  if (a.data_ptr() == b.data_ptr() && a.is_contiguous() && b.is_contiguous())
    return true;
  const auto x = a.cpu().contiguous(), y = b.cpu().contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0; // compared as bytes, so that equal NaNs are equal
}

bool equal_bits(const tensor_map* a, const tensor_map* b) {
  const auto count = [](const tensor_map* tensors) { return tensors ? tensors->size() : 0; };
  if (a == b || (count(a) == 0 && count(b) == 0))
    return true;
  if (count(a) != count(b))
    return false;
  for (const auto& [name, value] : *a) {
    const auto* const other = b->find(name);
    if (!other || !equal_bits(value, *other))
      return false;
  }
  return true;
}

} // namespace mneme

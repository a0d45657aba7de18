#include "runtime/check.hpp"
#include "runtime/safetensors.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <set>
#include <sstream>
namespace mneme {
namespace {

// P weights of a net.

/// As the shape of a tensor reads in an error: "[64, 10]".
std::string text_of(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

/// Whether every parameter of the head is in `named`, made for as many classes as the net has.
bool has_head(const model& net, const tensor_map& named) {
  return std::all_of(net.layout().begin(), net.layout().end(), [&](const parameter& one) {
    const auto* found = one.head ? named.find(one.name) : nullptr;
    return !one.head || (found && found->sizes() == at::IntArrayRef(one.shape));
  });
}

/// Why `found` (null: absent) cannot be the parameter `wanted`, or "".
std::string refusal(const parameter& wanted, const at::Tensor* found) {
  const auto quoted = "'" + wanted.name + "'";
  if (!found)
    return "tensor " + quoted + " of shape " + text_of(wanted.shape) +
           " is missing; is this the file of another model?";
  if (found->sizes() != at::IntArrayRef(wanted.shape))
    return "tensor " + quoted + " has shape " + text_of(found->sizes()) + ", but the model needs " +
           text_of(wanted.shape) + "; check the keys of [model]";
  if (!at::isFloatingType(found->scalar_type()))
    return "tensor " + quoted + " is " + c10::toString(found->scalar_type()) + "; weights must be floating-point";
  if (!found->isfinite().all().item<bool>())
    return "tensor " + quoted + " holds values that are not finite; the file is damaged, or its training diverged";
  return "";
}

} // namespace

tensor_map named_parameters(const model& net, const at::Tensor& flat) {
  tensor_map result;
  for (const auto& one : net.layout()) {
    MNEME_CHECK(flat.dim() == 1 && one.offset + one.size <= flat.numel(), one.name, flat.sizes());
    result.put(one.name, as_in_files(flat, one).contiguous());
  }
  return result;
}

expected<at::Tensor> flat_parameters(const model& net, const tensor_map& named, const std::string& file,
                                     const at::Tensor* head_from) {
  const bool own_head = !head_from || has_head(net, named);
  MNEME_CHECK(own_head || head_from->numel() == net.size(), head_from->numel(), net.size());
  auto flat = at::zeros({net.size()}, at::kFloat); // [P]
  findings wrong;
  std::set<std::string, std::less<>> known;
  for (const auto& one : net.layout()) {
    known.insert(one.name);
    if (one.head && !own_head) {
      put_as_in_files(flat, one, as_in_files(*head_from, one));
      continue;
    }
    const auto* found = named.find(one.name);
    if (auto why = refusal(one, found); !why.empty())
      wrong.push_back({file, std::move(why)});
    else
      put_as_in_files(flat, one, found->to(at::kFloat).contiguous());
  }
  // Batches a layer has seen, which PyTorch counts and no result depends on, are left out.
  for (const auto& [name, value] : named)
    if (!known.contains(name) && !name.ends_with(".num_batches_tracked"))
      wrong.push_back({file, "tensor '" + name + "' of shape " + text_of(value.sizes()) +
                                 " belongs to no parameter of the model; remove it, or check the keys of [model]"});
  if (!wrong.empty())
    return tl::unexpected<findings>{std::move(wrong)};
  return flat;
}

} // namespace mneme

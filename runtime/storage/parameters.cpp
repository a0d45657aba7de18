#include "runtime/storage/parameters.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/storage/weight_names.hpp"
#include <algorithm>
#include <set>
#include <sstream>
namespace mneme {
namespace {

// Axis: P weights of a net.

/// Formats a tensor's shape for errors: "[64, 10]".
std::string text_of(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

/// Determines which parameters a file of pretrained weights may lack: the head, and adapters of a frozen body.
class additions {
public:
  /// @param are_added true if the file may lack them
  additions(const model& net, const tensor_map& named, bool are_added) {
    const auto& parameters = net.layout();
    headless_ = are_added && net.classes() == 0;
    adapted_ = std::any_of(parameters.begin(), parameters.end(), [](const parameter& entry) { return in_body(entry); });
    const auto in_file = [&](const parameter& entry) {
      const auto* value = named.find(entry.name);
      return value && value->sizes() == at::IntArrayRef(entry.shape);
    };
    for (const auto& entry : parameters) {
      if (are_added && entry.head && !in_file(entry)) // a head that is missing or has other classes is not used at all
        no_head_ = true;
      if (is_adapter(entry) && named.find(entry.name)) // a file with one adapter must have all of them
        no_adapters_ = false;
    }
    no_adapters_ = are_added && no_adapters_;
    for (const auto& entry : parameters)
      if (entry.head && no_head_)
        unread_.push_back(entry.name.substr(0, entry.name.rfind('.') + 1));
  }

  [[nodiscard]] bool absent(const parameter& entry) const {
    return entry.head ? no_head_ : is_adapter(entry) && no_adapters_;
  }
  /// True if a tensor belongs to a head that is not used. Another kind of head may have other tensors under other
  /// names. For a net without a head, every tensor outside of all blocks, such as "fc.weight", belongs to such a head.
  [[nodiscard]] bool unread(const std::string& name) const {
    if (headless_)
      return name.find('.') == name.rfind('.');
    return no_head_ && std::any_of(unread_.begin(), unread_.end(), [&](const std::string& layer) {
             return name.starts_with(layer) && name.find('.', layer.size()) == std::string::npos;
           });
  }

private:
  /// True for parameters that are neither in the frozen body nor in the head.
  [[nodiscard]] bool is_adapter(const parameter& entry) const { return adapted_ && !in_body(entry) && !entry.head; }
  /// True for the frozen body of a net with adapters. Parameters frozen by model.frozen do not count as such a body.
  [[nodiscard]] static bool in_body(const parameter& entry) { return entry.frozen && !entry.held; }

  bool headless_ = false, adapted_ = false, no_head_ = false, no_adapters_ = true;
  std::vector<std::string> unread_{"head.", "fc.", "classifier."}; // prefixes of heads in timm, torchvision and this
                                                                   // net
};

/// Returns why `value` cannot be the parameter `entry`; "" if it can. @param value null: missing
std::string refusal(const parameter& entry, const at::Tensor* value) {
  const auto quoted = "'" + entry.name + "'";
  if (!value)
    return "tensor " + quoted + " of shape " + text_of(entry.shape) + " is missing; is this the file of another model?";
  if (value->sizes() != at::IntArrayRef(entry.shape))
    return "tensor " + quoted + " has shape " + text_of(value->sizes()) + ", but the model needs " +
           text_of(entry.shape) + "; check the keys of [model]";
  if (!at::isFloatingType(value->scalar_type()))
    return "tensor " + quoted + " is " + c10::toString(value->scalar_type()) + "; weights must be floating-point";
  if (!value->isfinite().all().item<bool>())
    return "tensor " + quoted + " holds values that are not finite; the file is damaged, or its training diverged";
  return "";
}

} // namespace

tensor_map named_parameters(const model& net, const at::Tensor& flat) {
  tensor_map result;
  for (const auto& parameter : net.layout()) {
    MNEME_CHECK(flat.dim() == 1 && parameter.offset + parameter.size <= flat.numel(), parameter.name, flat.sizes());
    result.put(parameter.name, as_in_files(flat, parameter).contiguous());
  }
  return result;
}

expected<at::Tensor> flat_parameters(const model& net, const tensor_map& in_file, const std::string& file,
                                     const at::Tensor* others_from) {
  MNEME_CHECK(!others_from || others_from->numel() == net.size(), others_from->numel(), net.size());
  diagnostics errors;
  const auto named = with_net_names(net, in_file, file, errors);
  const additions added(net, named, others_from != nullptr);
  auto flat = new_tensor({net.size()}, at::kFloat).zero_(); // [P]
  std::set<std::string, std::less<>> known;
  for (const auto& parameter : net.layout()) {
    known.insert(parameter.name);
    if (added.absent(parameter)) {
      put_as_in_files(flat, parameter, as_in_files(*others_from, parameter));
      continue;
    }
    const auto* value = named.find(parameter.name);
    if (auto reason = refusal(parameter, value); !reason.empty())
      errors.push_back({file, std::move(reason)});
    else
      put_as_in_files(flat, parameter, value->to(at::kFloat).contiguous());
  }
  // Ignores PyTorch's batch counters (num_batches_tracked), because no result depends on them.
  for (const auto& [name, value] : named)
    if (!known.contains(name) && !added.unread(name) && !name.ends_with(".num_batches_tracked"))
      errors.push_back({file, "tensor '" + name + "' of shape " + text_of(value.sizes()) +
                                  " belongs to no parameter of the model; remove it, or check the keys of [model]"});
  if (!errors.empty())
    return tl::unexpected<diagnostics>{std::move(errors)};
  return flat;
}

} // namespace mneme

#include "actors/nodes/tensor_caches.hpp"
#include <algorithm>
namespace mneme {
namespace {

digest128 name_for(const at::Tensor& value) {
  tensor_map alone;
  alone.put("", value);
  return digest_of(alone);
}

[[noreturn]] void fail_unknown(const digest128& name) {
  throw archive_error("refers to the tensor " + hex_text(name) + ", which is not in the cache");
}

} // namespace

// -- tensor_cache -----------------------------------------------------------------------------------------------------

const at::Tensor* tensor_cache::find(const digest128& name) const {
  const auto entry = tensors_.find(name);
  return entry == tensors_.end() ? nullptr : &entry->second;
}

const digest128* tensor_cache::name_of(const at::Tensor& value) const {
  const auto entry = names_.find(value.unsafeGetTensorImpl());
  return entry == names_.end() ? nullptr : &entry->second;
}

void tensor_cache::put(const digest128& name, const at::Tensor& value) {
  if (!tensors_.emplace(name, value).second)
    return;
  names_[value.unsafeGetTensorImpl()] = name;
  bytes_ += value.nbytes();
}

void tensor_cache::erase(const digest128& name) {
  const auto entry = tensors_.find(name);
  if (entry == tensors_.end())
    return;
  bytes_ -= entry->second.nbytes();
  names_.erase(entry->second.unsafeGetTensorImpl());
  tensors_.erase(entry);
}

// -- cache of the run -------------------------------------------------------------------------------------------------

std::optional<tensor_exchange::offered_tensor> run_tensor_cache::offer(const at::Tensor& value) {
  if (value.nbytes() < named_tensor_bytes_min)
    return std::nullopt;
  const auto* const known = cache_.name_of(value);
  const auto name = known ? *known : name_for(value);
  const bool is_new = cache_.find(name) == nullptr;
  cache_.put(name, value);
  touch(name);
  return offered_tensor{.name = name, .is_new = is_new};
}

void run_tensor_cache::keep(const digest128& name, const at::Tensor& value) {
  for (const auto& [message, shelf] : forgotten_)
    if (shelf.find(name)) // the run has evicted this tensor, so the node evicts it, too
      return;
  cache_.put(name, value);
  touch(name);
}

at::Tensor run_tensor_cache::find(const digest128& name) {
  if (const auto* const entry = cache_.find(name)) {
    touch(name);
    return *entry;
  }
  for (const auto& [message, shelf] : forgotten_)
    if (const auto* const entry = shelf.find(name))
      return *entry;
  fail_unknown(name);
}

void run_tensor_cache::touch(const digest128& name) { used_[name] = message_; }

std::vector<digest128> run_tensor_cache::end_message() {
  std::vector<digest128> names;
  if (cache_.bytes() > bytes_max_) {
    std::vector<std::pair<std::uint64_t, digest128>> by_use;
    for (const auto& [name, message] : used_)
      if (message < message_)
        by_use.emplace_back(message, name);
    std::sort(by_use.begin(), by_use.end());
    for (const auto& [message, name] : by_use) {
      if (cache_.bytes() <= bytes_max_)
        break;
      forgotten_[message_].put(name, *cache_.find(name));
      cache_.erase(name);
      used_.erase(name);
      names.push_back(name);
    }
  }
  ++message_;
  return names;
}

bool run_tensor_cache::acknowledge(std::uint64_t messages) {
  if (messages >= message_)
    return false;
  forgotten_.erase(forgotten_.begin(), forgotten_.upper_bound(messages));
  return true;
}

// -- cache of the node ------------------------------------------------------------------------------------------------

std::optional<tensor_exchange::offered_tensor> node_tensor_cache::offer(const at::Tensor& value) {
  if (value.nbytes() < named_tensor_bytes_min)
    return std::nullopt;
  if (const auto* const known = cache_.name_of(value))
    return offered_tensor{.name = *known};
  const auto name = name_for(value);
  const bool is_new = cache_.find(name) == nullptr;
  cache_.put(name, value);
  return offered_tensor{.name = name, .is_new = is_new};
}

at::Tensor node_tensor_cache::find(const digest128& name) {
  if (const auto* const entry = cache_.find(name))
    return *entry;
  fail_unknown(name);
}

void node_tensor_cache::forget(const std::vector<digest128>& names) {
  for (const auto& name : names)
    cache_.erase(name);
}

} // namespace mneme

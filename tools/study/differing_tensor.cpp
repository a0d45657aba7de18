#include "tools/study/differing_tensor.hpp"
#include "runtime/formats/safetensors_file.hpp"
#include <ATen/core/Tensor.h>
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
namespace mneme {
namespace {

/// Parses a tensor name of a value file: "server.00003.client_7.fc1.weight" or "model.fc1.weight".
differing_tensor place_of(const std::string& name) {
  const auto first = name.find('.');
  if (name.starts_with("model.") || first == std::string::npos)
    return {.name = name.substr(std::min(first, name.size() - 1) + 1)};
  const auto second = name.find('.', first + 1), third = name.find('.', second + 1);
  constexpr std::string_view lead = "client_";
  return {.party = name.substr(0, first),
          .client = name.substr(second + 1 + lead.size(), third - second - 1 - lead.size()),
          .name = name.substr(third + 1)};
}

/// Orders uploads before the model.
bool is_delivered_before(const std::string& a, const std::string& b) {
  const bool a_last = a.starts_with("model."), b_last = b.starts_with("model.");
  return a_last != b_last ? b_last : a < b;
}

std::string index_text(const at::Tensor& tensor, std::int64_t flat) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.dim()));
  for (auto d = tensor.dim() - 1; d >= 0; --d) {
    index[static_cast<std::size_t>(d)] = flat % tensor.size(d);
    flat /= tensor.size(d);
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

/// Formats the value in full precision and its bytes, because different floats may have the same text.
std::string element_text(const at::Tensor& tensor, std::int64_t flat) {
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.const_data_ptr()) + flat * tensor.element_size();
  std::string hex;
  for (auto i = tensor.element_size() - 1; i >= 0; --i)
    hex += fmt::format("{:02x}", bytes[i]);
  const auto number = tensor.view({-1})[flat].item();
  return number.isFloatingPoint() ? fmt::format("{:.17g} (0x{})", number.toDouble(), hex)
                                  : fmt::format("{} (0x{})", number.toLong(), hex);
}

/// Compares bits, so that equal NaNs count as equal.
void compare(differing_tensor& place, const at::Tensor& a, const at::Tensor& b) {
  const auto width = static_cast<std::size_t>(a.element_size());
  const auto* left = static_cast<const std::uint8_t*>(a.const_data_ptr());
  const auto* right = static_cast<const std::uint8_t*>(b.const_data_ptr());
  for (std::int64_t i = 0; i < a.numel(); ++i, left += width, right += width)
    if (std::memcmp(left, right, width) != 0 && place.elements++ == 0)
      place.element = differing_value{index_text(a, i), element_text(a, i), element_text(b, i)};
}

} // namespace

expected<std::optional<differing_tensor>> differing_tensor_of(const std::filesystem::path& first,
                                                              const std::filesystem::path& second) {
  const auto a = read_safetensors(first), b = read_safetensors(second);
  if (!a || !b)
    return tl::unexpected(a ? b.error() : a.error());
  std::set<std::string, decltype(&is_delivered_before)> names(&is_delivered_before);
  for (const auto* values : {&*a, &*b})
    for (const auto& [name, value] : *values)
      names.insert(name);
  for (const auto& name : names) {
    auto place = place_of(name);
    const auto *left = a->find(name), *right = b->find(name);
    if (!left || !right || left->scalar_type() != right->scalar_type() || left->sizes() != right->sizes())
      return std::optional(place);
    compare(place, *left, *right);
    if (place.elements > 0)
      return std::optional(place);
  }
  return std::optional<differing_tensor>();
}

} // namespace mneme

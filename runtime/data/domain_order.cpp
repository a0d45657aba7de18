#include "runtime/data/domain_order.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/options/unit_text.hpp"
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

constexpr const char* order_key = "tasks.domain_order";

tl::unexpected<diagnostics> order_error(const scenario& from, const std::string& text) {
  return failed(from.where(order_key), std::string(order_key) + ": " + text);
}

/// The number of the domain that an entry selects. Returns -1 if there is none.
std::int32_t find_domain(const std::string& entry, const std::vector<std::string>& names, bool by_name) {
  for (std::size_t domain = 0; domain < names.size(); ++domain)
    if (entry == (by_name ? names[domain] : std::to_string(domain)))
      return static_cast<std::int32_t>(domain);
  return -1;
}

expected<std::vector<std::int32_t>> parse_domain_list(const scenario& from, const std::vector<std::string>& list,
                                                      const std::vector<std::string>& names) {
  const bool by_name = std::any_of(list.begin(), list.end(), [&](const std::string& entry) {
    return std::find(names.begin(), names.end(), entry) != names.end();
  });
  std::vector<std::int32_t> order;
  for (const auto& entry : list) {
    const auto domain = find_domain(entry, names, by_name);
    if (domain < 0)
      return order_error(from, "unknown domain " + quote_text(entry) + "; expected names of " + word_list(names));
    if (std::find(order.begin(), order.end(), domain) != order.end())
      return order_error(from, "the domain " + quote_text(names[static_cast<std::size_t>(domain)]) +
                                   " occurs twice; expected each at most once");
    order.push_back(domain);
  }
  if (std::ssize(order) < from.tasks.count)
    return order_error(from, "the list has " + std::to_string(order.size()) + " of " + std::to_string(names.size()) +
                                 " domains, but the run has " + std::to_string(from.tasks.count) +
                                 " tasks (tasks.count); expected a domain for each task");
  return order;
}

} // namespace

expected<std::vector<std::int32_t>> domain_order(const scenario& from, const std::vector<std::string>& names) {
  MNEME_CHECK(from.tasks.count <= std::max<std::int64_t>(std::ssize(names), 1), from.tasks.count, names.size());
  if (const auto* const list = std::get_if<std::vector<std::string>>(&from.tasks.domain_order))
    return parse_domain_list(from, *list, names);
  std::vector<std::int32_t> order(std::max<std::size_t>(names.size(), 1));
  std::iota(order.begin(), order.end(), 0);
  if (std::get<std::string>(from.tasks.domain_order) == "natural")
    return order;
  auto key = key_for({.seed = from.data_seed()}, purpose::class_order);
  key.index = 1; // index 0 belongs to the order of classes
  rng_stream(key).shuffle(std::span(order));
  return order;
}

} // namespace mneme

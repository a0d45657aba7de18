#include "strategies/stsa/adapting_method.hpp"
#include "runtime/base/check.hpp"
#include <stdexcept>
#include <variant>
namespace mneme::stsa_method {
namespace {

std::unique_ptr<strategy> method_named(const std::string& name) {
  for (const auto& entry : strategies())
    if (entry.name == name)
      return entry.make();
  throw std::logic_error("unknown method " + name);
}

} // namespace

std::shared_ptr<strategy> adapting_method(const adapter_choice& choice) {
  if (choice.kind == adapter_kind::none)
    return nullptr;
  const bool is_pilora = choice.kind == adapter_kind::pilora;
  std::shared_ptr<strategy> method = method_named(is_pilora ? "pilora" : "fed-cprompt");
  if (is_pilora && choice.rate > 0.0) {
    key_table keys;
    method->keys(keys);
    const auto* const rate = keys.find("low_rank_rate");
    MNEME_CHECK(rate != nullptr);
    *std::get<double*>(rate->target) = choice.rate;
  }
  return method;
}

} // namespace mneme::stsa_method

#include "runtime/method/strategy.hpp"
#include "runtime/base/registry.hpp"
namespace mneme {

strategy_registration::strategy_registration(strategy_entry entry) {
  registered<strategy_entry>().push_back(std::move(entry));
}

task<client_result> strategy::client_observe(client_context&, const broadcast&) const { co_return client_result{}; }

std::vector<strategy_entry> strategies() { return sort_by_name<strategy_entry>(); }

} // namespace mneme

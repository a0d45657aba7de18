#include "runtime/method/strategy.hpp"
#include "runtime/base/registry.hpp"
namespace mneme {

task<task_plan> server_half::open_task(server_context&, const round_place&) { co_return task_plan{}; }

strategy_registration::strategy_registration(strategy_entry entry) {
  registered<strategy_entry>().push_back(std::move(entry));
}

std::vector<strategy_entry> strategies() { return registered_by_name<strategy_entry>(); }

} // namespace mneme

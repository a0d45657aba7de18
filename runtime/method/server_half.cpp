#include "runtime/method/server_half.hpp"
namespace mneme {

task<task_plan> server_half::open_task(server_context&, const round_info&) { co_return task_plan{}; }

} // namespace mneme

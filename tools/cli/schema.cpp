#include "runtime/scenario/schema.hpp"
#include "tools/cli/messages.hpp"
#include <cstdio>
namespace mneme {

int print_schema() {
  std::fputs(scenario_schema_text().c_str(), stdout);
  return exit_done;
}

} // namespace mneme

#include "actors/run/process.hpp"
#include "actors/protocol/interfaces.hpp"
#include "runtime/base/arithmetic.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/base/tuning.hpp"
#include <c10/util/Logging.h>
#include <caf/init_global_meta_objects.hpp>
#include <caf/thread_hook.hpp>
#include <cerrno>
#include <fmt/format.h>
#include <stdexcept>
#include <system_error>
#include <thread>
namespace mneme {
namespace {

/// Limits LibTorch to one thread in actor threads, because actors compute batches and server steps in parallel.
class one_thread_hook final : public caf::thread_hook {
public:
  void init(caf::actor_system& /*system*/) override {}
  void thread_started() override { disable_intra_op_threads(); }
  void thread_terminates() override {}
};

/// Throws std::runtime_error if no thread can be started; libraries would end the process later.
void expect_threads() {
  const auto reason = exception_message_of([] { std::thread([] {}).join(); });
  if (reason.empty())
    return;
  const bool is_refused = reason.find(std::generic_category().message(EPERM)) != std::string::npos;
  throw std::runtime_error(fmt::format(
      "cannot start a thread: {}; {}", reason,
      is_refused ? "a sandbox refuses the system call clone3 with EPERM; expected a container runtime that allows it"
                 : "expected higher limits of processes and memory (ulimit -u, the pids limit of a container)"));
}

} // namespace

void prepare_process() {
  static const bool types_known = [] {
    caf::init_global_meta_objects<caf::id_block::mneme>();
    caf::core::init_global_meta_objects();
    expect_threads();
    c10::SetStackTraceFetcher([] { return std::string(); }); // omits addresses from error messages
    return true;
  }();
  MNEME_CHECK(types_known);
  disable_intra_op_threads();
  use_arithmetic();
}

void configure(caf::actor_system_config& config, std::size_t threads, const system_options& options) {
  config.set("caf.scheduler.policy", "sharing"); // idle threads sleep: polling would take time from workers
  if (options.waits_for_nodes)
    config.set("caf.scheduler.max-throughput", tuning::messages_of_turn);
  config.set("caf.scheduler.max-threads", threads);
  if (options.measures_actors) { // a metric reads a clock for each message, which is too slow for clients
    config.set("caf.metrics-filters.actors.includes", std::vector<std::string>{"mneme.*"});
    config.set("caf.metrics-filters.actors.excludes", std::vector<std::string>{"mneme.client"});
  }
  config.add_thread_hook<one_thread_hook>();
}

void forget_settings(caf::actor_system_config& config) { config.content.clear(); }

} // namespace mneme

#include "actors/nodes/placement.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <condition_variable>
#include <limits>
using namespace mneme;

namespace {

/// Counts events of other threads.
class counted_events {
public:
  void add(const std::string& event) {
    const std::lock_guard hold(mutex_);
    ++counts_[event];
    changed_.notify_all();
  }
  /// Returns false if the event does not happen within a minute.
  [[nodiscard]] bool await(const std::string& event) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, std::chrono::minutes(1), [&] { return counts_[event] > 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> counts_;
};

/// A node that joins, and answers the first start of rounds with one job of its only round.
class node_by_hand final : public connection_watcher {
public:
  node_by_hand(std::uint16_t port, counted_events& events) : events_(events), loop_(nullptr, {}, *this) {
    id_ = loop_.connect(loop_.place_of({.host = "127.0.0.1", .port = port}).value());
  }
  void send(archive message) { loop_.send(id_, std::move(message)); }

private:
  void opened(connection_id id, const std::string& /*peer*/, bool /*accepted*/) override {
    loop_.mark_authenticated(id);
    loop_.send(id, message_of(node_message::greeting,
                              node_hello{.process = 1, .name = "a", .program = program_fingerprint(), .workers = 1}));
  }
  void received(connection_id id, archive::buffer message) override {
    const auto kind = static_cast<node_message>(message->front());
    if (kind == node_message::offer)
      loop_.send(id, message_of(node_message::ready, node_ready{}));
    if (kind == node_message::start)
      loop_.send(id, report_of_one_job());
    if (kind == node_message::end)
      events_.add("end");
    loop_.consumed(id, message->size());
  }
  void closed(connection_id, const std::string&, const std::string&, bool) override {}

  static archive report_of_one_job() {
    wave_report wave{.issued = {{.id = {{1}, 0, 0}}}};
    node_tensor_cache tensors;
    archive message;
    auto kind = node_message::report;
    node_counters figures{.messages_handled = 1, .busy_ns = std::numeric_limits<std::int64_t>::max()};
    message(kind)(figures);
    serialize_wave(message, wave, tensors);
    return message;
  }

  counted_events& events_;
  connection_id id_ = 0;
  connection_loop loop_; // last, so that its thread ends before the members it uses
};

start_rounds one_round() {
  start_rounds wave;
  wave.assignments.emplace_back();
  wave.assignments.back().id = {1};
  wave.assignments.back().in = std::make_shared<const broadcast>();
  wave.ready.emplace_back();
  return wave;
}

} // namespace

TEST_CASE("placement limits a node's busy time and releases it when its last round on a GPU is abandoned") {
  caf::init_global_meta_objects<caf::id_block::mneme>();
  caf::core::init_global_meta_objects();
  auto run = std::make_shared<run_context>();
  run->scenario.clients.count = 1;
  run->population = std::make_shared<const population>(run->scenario);
  *run->busy_ns = 1;
  run->device = "cuda:0"; // where only idle shards move; nothing is computed
  run->scenario.worker.without_nodes = no_nodes_policy::wait;
  counted_events events;
  auto pool = std::make_shared<node_pool>(node_pool_settings{.listen = {.host = "127.0.0.1", .port = 0}});
  node_by_hand node(pool->listen().value(), events);
  REQUIRE(pool->await_ready({}, {.nodes = 1, .timeout = std::chrono::minutes(1)}));

  caf::actor_system_config config;
  caf::actor_system system(config);
  const report_sink_actor scheduler = system.spawn([&events]() -> report_sink_actor::behavior_type {
    return {[&events](const wave_report&) { events.add("report"); }};
  });
  const placement_actor placement = system.spawn<placement_actor::stateful_impl<placement_state>>(
      run_context_ref(run), pool, std::make_shared<node_records>(), placement_links{.scheduler = scheduler});
  pool->begin({}, {.reported =
                       [&](node_number number, archive::buffer message) {
                         caf::anon_send(placement, node_frame{.node = number, .content = std::move(message)});
                       },
                   .joined =
                       [&](node_number number) {
                         caf::anon_send(placement, node_status_change{.node = number, .event = node_event::joined});
                       },
                   .leaving =
                       [&](node_number number) {
                         caf::anon_send(placement, node_status_change{.node = number, .event = node_event::leaving});
                         events.add("leaving");
                       },
                   .lost = [](node_number, const std::string&) {},
                   .warn = [](const std::string&) {}});
  caf::anon_send(placement, one_round());
  REQUIRE(events.await("report")); // the round is at the node, and its job is not released
  node.send(message_of(node_message::leaving, no_content{}));
  REQUIRE(events.await("leaving"));
  caf::anon_send(placement, abandon{.assignments = {{1}}});
  CHECK(events.await("end"));
  CHECK(run->busy_ns->load() == std::int64_t{1} << 62); // the node states 2^63 - 1 ns

  pool->detach();
  caf::anon_send_exit(placement, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(scheduler, caf::exit_reason::user_shutdown);
}

#include "actors/nodes/placement.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <condition_variable>
#include <fmt/format.h>
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

/// A node that joins with one round: it reports a job of stage 0 when the round starts, and one of stage 1 when that
/// job is released.
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
    if (kind == node_message::start || kind == node_message::release)
      loop_.send(id, report_of_one_job(kind == node_message::start ? 0 : 1));
    if (kind == node_message::end)
      events_.add("end");
    loop_.consumed(id, message->size());
  }
  void closed(connection_id, const std::string&, const std::string&, bool) override {}

  static archive report_of_one_job(std::uint32_t stage) {
    wave_report wave{.issued = {{.id = {{1}, stage, 0}}}};
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

/// Ends an actor with its scope.
template <class Handle>
struct ended_actor {
  Handle handle;
  ~ended_actor() { caf::anon_send_exit(handle, caf::exit_reason::user_shutdown); }
};

/// CAF's types, which must be registered before an actor system starts.
struct registered_types {
  registered_types() {
    caf::init_global_meta_objects<caf::id_block::mneme>();
    caf::core::init_global_meta_objects();
  }
};

/// A run with one node, one shard and one round. Without nodes the shard waits.
struct run_of_one_node {
  explicit run_of_one_node(const std::string& device) {
    run->scenario.clients.count = 1;
    run->population = std::make_shared<const population>(run->scenario);
    *run->busy_ns = 1;
    run->device = device;
    run->scenario.worker.no_nodes = no_nodes_policy::wait;
    pool->offer({});
    REQUIRE(pool->await_ready({}, {.nodes = 1, .timeout = std::chrono::minutes(1)}));
    scheduler.emplace(system.spawn([this]() -> report_sink_actor::behavior_type {
      return {[this](const wave_report& in) { events.add(fmt::format("stage {}", in.issued.at(0).id.stage)); }};
    }));
    placement.emplace(system.spawn<placement_actor::stateful_impl<placement_state>>(
        run_context_ref(run), pool, records, placement_links{.scheduler = scheduler->handle}));
    const auto changed = [this](const node_status_change& change) { caf::anon_send(placement->handle, change); };
    pool->begin({}, {.reported =
                         [this](node_number number, archive::buffer message) {
                           caf::anon_send(placement->handle, node_frame{.node = number, .content = std::move(message)});
                         },
                     .joined = [changed](node_number n) { changed({.node = n, .event = node_event::joined}); },
                     .leaving =
                         [this, changed](node_number n, std::chrono::milliseconds grace) {
                           changed({.node = n, .event = node_event::leaving, .grace = grace});
                           events.add("leaving");
                         },
                     .lost = [](node_number, const std::string&) {},
                     .warn = [](const std::string&) {}});
    caf::anon_send(placement->handle, one_round());
    REQUIRE(events.await("stage 0")); // the node runs the round, whose job is not released yet
  }
  ~run_of_one_node() { pool->detach(); }

  template <class Message>
  void tell(Message message) {
    caf::anon_send(placement->handle, std::move(message));
  }
  void leave(std::chrono::milliseconds grace) {
    node.send(message_of(node_message::leaving, node_leave{.grace_ms = grace.count()}));
    REQUIRE(events.await("leaving"));
  }
  [[nodiscard]] std::int64_t rounds_rerun() const { return records->all().at(0).rounds_rerun; }

  std::shared_ptr<run_context> run = std::make_shared<run_context>();
  std::shared_ptr<node_records> records = std::make_shared<node_records>();
  counted_events events;
  std::shared_ptr<node_pool> pool =
      std::make_shared<node_pool>(node_pool_settings{.listen = {.host = "127.0.0.1", .port = 0}});
  node_by_hand node{pool->listen().value(), events};
  registered_types types;
  caf::actor_system_config config;
  caf::actor_system system{config};
  std::optional<ended_actor<report_sink_actor>> scheduler;
  std::optional<ended_actor<placement_actor>> placement;
};

const release first_job{.batches = {{{{1}, 0, 0}}}};
const abandon the_round{.assignments = {{1}}};

} // namespace

TEST_CASE("placement limits a node's busy time and releases it when its last round on a GPU is abandoned") {
  run_of_one_node at("cuda:0"); // on a GPU, only idle shards move; nothing is computed
  at.leave(std::chrono::minutes(1));
  at.tell(the_round);
  CHECK(at.events.await("end"));
  CHECK(at.run->busy_ns->load() == std::int64_t{1} << 62); // the node states 2^63 - 1 ns
}

TEST_CASE("a leaving node is released at once if no job of its rounds has been released") {
  run_of_one_node at("cpu");
  at.leave(std::chrono::minutes(1));
  CHECK(at.events.await("end"));
  CHECK(at.rounds_rerun() == 0);
}

TEST_CASE("a leaving node finishes a round with computed stages, so that nothing is rerun") {
  run_of_one_node at("cpu");
  at.tell(first_job);
  REQUIRE(at.events.await("stage 1"));
  at.leave(std::chrono::minutes(1));
  at.tell(the_round); // the round ends
  CHECK(at.events.await("end"));
  CHECK(at.rounds_rerun() == 0);
}

TEST_CASE("a leaving node whose grace period ends gives away a round with computed stages") {
  run_of_one_node at("cpu");
  at.tell(first_job);
  REQUIRE(at.events.await("stage 1"));
  at.leave(std::chrono::milliseconds(0));
  CHECK(at.events.await("end"));
  CHECK(at.rounds_rerun() == 1);
}

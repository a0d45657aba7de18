#include "actors/nodes/node_pool.hpp"
#include "runtime/base/exception_message.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
namespace mneme {
namespace {

constexpr std::size_t rejections_max = 32;

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::filesystem::file_size(path)));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file)
    throw std::runtime_error("'" + path.string() + "' can no longer be read");
  return bytes;
}

connection_stats sum_of(const connection_stats& a, const connection_stats& b) {
  return {.bytes_sent = a.bytes_sent + b.bytes_sent,
          .bytes_received = a.bytes_received + b.bytes_received,
          .message_bytes_given = a.message_bytes_given + b.message_bytes_given,
          .message_bytes_sent = a.message_bytes_sent + b.message_bytes_sent};
}

} // namespace

node_pool::node_pool(node_pool_settings settings)
    : settings_(std::move(settings)), address_(settings_.listen), loop_(settings_.identity, settings_.limits, *this) {}

// -- called on the run's thread ---------------------------------------------------------------------------------------

expected<std::uint16_t> node_pool::listen() {
  static_cast<void>(program_fingerprint()); // computed now and cached: hashing the program file takes longer than a
                                            // node waits
  auto port = loop_.listen(settings_.listen);
  if (port) {
    address_.port = *port;
    listening_.emplace();
  }
  return port;
}

void node_pool::offer(node_offer offered) {
  const std::lock_guard hold(mutex_);
  offer_ = std::move(offered);
  for (auto& node : nodes_)
    if (node.reached == stage::greeted)
      send_offer(node);
}

void node_pool::finish(run_end outcome) {
  const std::lock_guard hold(mutex_);
  outcome_ = std::move(outcome);
}

std::pair<std::int64_t, std::int64_t> node_pool::ready_nodes_and_workers() const {
  std::pair<std::int64_t, std::int64_t> sum{0, 0};
  for (const auto& node : nodes_)
    if (node.reached >= stage::ready) {
      ++sum.first;
      sum.second += node.workers;
    }
  return sum;
}

tl::expected<void, node_shortage> node_pool::await_ready(fingerprint_fields fingerprint, const node_minimum& minimum) {
  constexpr std::chrono::milliseconds interrupt_check_interval{50};
  std::unique_lock hold(mutex_);
  fingerprint_ = std::move(fingerprint);
  for (auto& node : nodes_)
    if (node.reached == stage::ready)
      compare_fingerprints(node);
  const auto is_enough = [&] {
    const auto [nodes, workers] = ready_nodes_and_workers();
    return nodes >= minimum.nodes && workers >= minimum.workers;
  };
  const recorder_stopwatch waited;
  const auto timeout_s = std::chrono::duration<double>(minimum.timeout).count();
  const bool needs_all = minimum.nodes > 0;
  constexpr double silent_s = 3.0;
  bool is_announced = false;
  while (!is_enough() && !(needs_all && !refused_.empty()) && waited.seconds() < timeout_s && !is_interrupted()) {
    changed_.wait_for(hold, interrupt_check_interval);
    if (!is_announced && waited.seconds() > silent_s) {
      log(fmt::format("waits for nodes at {}", reachable_address(address_).text()));
      is_announced = true;
    }
  }
  if (is_enough())
    return {};
  if (is_interrupted()) {
    auto errors = refused_; // nodes may have been rejected while the run waited for them
    errors.push_back({"", "interrupted while waiting for nodes"});
    return tl::unexpected(node_shortage{.outcome = run_outcome::interrupted, .reasons = std::move(errors)});
  }
  if (!refused_.empty())
    return tl::unexpected(node_shortage{.outcome = run_outcome::bad_input, .reasons = refused_});
  ranks_overdue_ = true;
  const auto [nodes, workers] = ready_nodes_and_workers();
  return tl::unexpected(node_shortage{
      .reasons = {
          {"", fmt::format("{} nodes with {} workers have joined at {} within {} s (worker.join_timeout), and {} "
                           "are needed; start the others with mneme node --join {}, or lower --workers-min",
                           nodes, workers, address_.text(), minimum.timeout.count() / 1000,
                           minimum.nodes > nodes ? fmt::format("{} nodes", minimum.nodes)
                                                 : fmt::format("{} workers", minimum.workers),
                           reachable_address(address_).text())}}});
}

void node_pool::begin(const node_layout& layout, node_pool_hooks hooks) {
  const std::lock_guard hold(mutex_);
  layout_ = layout;
  hooks_ = std::move(hooks);
  for (const auto& [where, text] : refused_)
    log(where + " does not join: it " + text);
  for (auto& node : nodes_)
    if (node.reached == stage::ready) {
      node.is_initial = true;
      start_work(node);
    }
}

void node_pool::send(node_number number, archive message) {
  const std::lock_guard hold(mutex_);
  loop_.send(nodes_.at(number).connection, std::move(message));
}

void node_pool::consumed(node_number number, std::size_t bytes) {
  const std::lock_guard hold(mutex_);
  loop_.consumed(nodes_.at(number).connection, bytes);
}

void node_pool::drop(node_number number, const std::string& error_text) {
  const std::lock_guard hold(mutex_);
  auto& node = nodes_.at(number);
  node.is_dropped = true;
  refuse(node.connection, node.address, {error_text});
}

void node_pool::release(node_number number) {
  const std::lock_guard hold(mutex_);
  send_end(nodes_.at(number), {.outcome = run_outcome::done, .reason = ""}, "has left");
}

void node_pool::interrupt() {
  const std::lock_guard hold(mutex_);
  for (const auto& node : nodes_)
    if (node.reached == stage::at_work)
      loop_.send(node.connection, message_of(node_message::interrupt, no_content{}));
}

void node_pool::detach() {
  const std::lock_guard hold(mutex_);
  hooks_ = {.reported = [](node_number, archive::buffer) {},
            .joined = [](node_number) {},
            .leaving = [](node_number, std::chrono::milliseconds) {},
            .lost = [](node_number, const std::string&) {},
            .warn = [](const std::string&) {}};
}

node_pool::~node_pool() {
  // Time in which nodes may still fetch the outcome. A node that connects later gets no outcome and retries until its
  // own idle timeout.
  constexpr std::chrono::seconds closing_time{1};
  constexpr double starting_seconds = 30.0;
  std::unique_lock hold(mutex_);
  if (!settings_.nodes_stay || is_interrupted()) {
    has_ended_ = true;
    for (auto& node : nodes_)
      if (node.reached != stage::away)
        send_end(node, outcome_, "the run is over");
    const auto waits = [&] {
      return listening_ && missing_ranks() > 0 && listening_->seconds() < starting_seconds && !is_interrupted();
    };
    if (waits() && settings_.log)
      settings_.log("the run has ended; this process waits up to 30 s for ranks that have not joined, and ends them");
    while (waits())
      changed_.wait_for(hold, std::chrono::milliseconds(50));
  }
  changed_.wait_for(hold, closing_time, [this] { return has_ended_ ? peers_.empty() : closing_.empty(); });
}

std::size_t node_pool::size() {
  const std::lock_guard hold(mutex_);
  return nodes_.size();
}

std::int64_t node_pool::workers() {
  const std::lock_guard hold(mutex_);
  return ready_nodes_and_workers().second;
}

node_view node_pool::view(node_number number) {
  const std::lock_guard hold(mutex_);
  const auto& node = nodes_.at(number);
  return {.address = node.address,
          .name = node.name,
          .workers = node.workers,
          .is_ready = node.reached >= stage::ready,
          .is_initial = node.is_initial,
          .is_dropped = node.is_dropped,
          .traffic = sum_of(node.before, loop_.figures(node.connection))};
}

// -- called on the connections' thread --------------------------------------------------------------------------------

node_pool::node_state* node_pool::node_of(connection_id id) {
  for (auto& node : nodes_)
    if (node.connection == id && node.reached != stage::away)
      return &node;
  return nullptr;
}

std::string node_pool::describe(connection_id id) const {
  const auto entry = peers_.find(id);
  return entry == peers_.end() ? "unknown" : entry->second;
}

void node_pool::log(const std::string& text) {
  if (layout_)
    hooks_.warn(text);
  else if (settings_.log)
    settings_.log(text);
}

void node_pool::opened(connection_id id, const std::string& peer, bool /*accepted*/) {
  const std::lock_guard hold(mutex_);
  peers_[id] = peer;
}

void node_pool::received(connection_id id, archive::buffer message) {
  const std::lock_guard hold(mutex_);
  const auto* const node = node_of(id);
  const bool is_report = !message->empty() && message->front() == static_cast<std::byte>(node_message::report);
  if (node && node->reached == stage::at_work && is_report)
    return hooks_.reported(number_of(*node), std::move(message));
  const auto bytes = message->size();
  handle(id, message);
  loop_.consumed(id, bytes);
  changed_.notify_all();
}

void node_pool::handle(connection_id id, const archive::buffer& message) {
  const auto error = exception_message_of([&] {
    auto content = reader_of(message);
    auto kind = node_message::greeting;
    content(kind);
    if (auto* const node = node_of(id))
      handle(*node, kind, content);
    else if (kind == node_message::greeting)
      greet(id, content);
    else
      throw archive_error("comes before a greeting");
    content.expect_end();
  });
  if (error.empty())
    return;
  auto* const node = node_of(id);
  if (!node)
    return loop_.drop(id, "sends a message that " + error);
  node->is_dropped = true;
  refuse(id, node->address, {"sends a message that " + error});
}

void node_pool::handle(node_state& node, node_message kind, archive& content) {
  if (kind == node_message::refusal) {
    node_rejection in;
    content(in);
    for (auto& reason : in.reasons)
      reason = printable_ascii(reason);
    refuse(node.connection, node.address, std::move(in.reasons));
  } else if (kind == node_message::file_request && node.reached == stage::loading) {
    file_request in;
    content(in);
    send_files(node, in.keys);
  } else if (kind == node_message::ready && node.reached == stage::loading) {
    node_ready in;
    content(in);
    for (auto& [name, value] : in.fingerprint)
      value = printable_ascii(value);
    node.fingerprint = std::move(in.fingerprint);
    node.reached = stage::ready;
    if (fingerprint_)
      compare_fingerprints(node);
  } else if (kind == node_message::leaving && node.reached == stage::at_work) {
    node_leave in;
    content(in);
    hooks_.leaving(number_of(node), std::chrono::milliseconds(in.grace_ms));
  } else {
    throw archive_error("is not valid in this state (kind " + std::to_string(static_cast<int>(kind)) + ")");
  }
}

/// Returns the entry of a process that reconnects, or a new one. Returns null while its earlier connection is open.
node_pool::node_state* node_pool::find_or_add(std::uint64_t process) {
  for (auto& node : nodes_)
    if (node.process == process) {
      if (node.reached == stage::away)
        return &node;
      loop_.drop(node.connection, "has connected a second time");
      return nullptr;
    }
  return &nodes_.emplace_back(node_state{.process = process});
}

/// Returns why a node is a rank of another run; empty if it may join. Without a job id, a rank belongs to another run
/// if this run already has that rank.
std::string node_pool::other_run_error(const node_hello& from) const {
  constexpr const char* fix = "start one of the runs with another MASTER_PORT";
  if (from.rank < 0)
    return {};
  if (!settings_.job)
    return fmt::format("is rank {} of another run, since no launcher has started this run; {}", from.rank, fix);
  const auto text_of = [](const std::string& job) { return job.empty() ? "a job without id" : printable_ascii(job); };
  if (from.job != *settings_.job)
    return fmt::format("is rank {} of another run: {}, and this run is {}; {}", from.rank, text_of(from.job),
                       text_of(*settings_.job), fix);
  const auto is_taken = [&](const node_state& node) {
    return node.rank == from.rank && node.process != from.process && node.reached != stage::away;
  };
  if (!from.job.empty() || std::none_of(nodes_.begin(), nodes_.end(), is_taken))
    return {};
  return fmt::format("is a second rank {}, so it belongs to another run; end the processes of that run, or {}",
                     from.rank, fix);
}

void node_pool::greet(connection_id id, archive& content) {
  node_hello in;
  content(in);
  if (in.workers < 1 || in.workers > node_workers_max)
    throw archive_error("does not come from a node");
  loop_.mark_authenticated(id);
  const auto address = describe(id);
  const auto name = printable_ascii(in.name);
  if (auto error = other_run_error(in); !error.empty()) { // this run continues, even if it waits for its own ranks
    log_rejection(name + " at " + address, error);
    loop_.send(id, message_of(node_message::refusal, node_rejection{.reasons = {error}}));
    return close(id, error);
  }
  for (auto& [fact, value] : in.program)
    value = printable_ascii(value);
  if (auto differing = differences(program_fingerprint(), in.program); !differing.empty() && !has_ended_) {
    ++rejected_peers_;
    return refuse(id, name + " at " + address, std::move(differing));
  }
  auto* const node = find_or_add(in.process);
  if (!node)
    return close(id, "has connected a second time");
  if (node->is_dropped)
    return refuse(id, name + " at " + address, {"was dropped from this run before"});
  node->connection = id;
  node->name = name;
  node->address = address;
  node->workers = in.workers;
  node->rank = in.rank;
  node->sent_files.clear();
  node->reached = stage::greeted;
  if (has_ended_)
    send_end(*node, outcome_, "the run is over");
  else if (offer_)
    send_offer(*node);
}

void node_pool::send_offer(node_state& node) {
  node.reached = stage::loading;
  loop_.send(node.connection, message_of(node_message::offer, offer_->offer));
}

void node_pool::send_end(node_state& node, const run_end& outcome, const std::string& reason) {
  loop_.send(node.connection, message_of(node_message::end, outcome));
  close(node.connection, reason);
}

/// Number of ranks that have never connected. Without a launcher every node counts as a rank.
std::int64_t node_pool::missing_ranks() const {
  const auto is_rank = [this](const node_state& node) { return !settings_.job || node.rank > 0; };
  return ranks_overdue_ ? 0 : settings_.ranks - std::count_if(nodes_.begin(), nodes_.end(), is_rank) - rejected_peers_;
}

void node_pool::send_files(node_state& node, const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    const auto file = offer_->files.find(key);
    if (file == offer_->files.end() || !node.sent_files.insert(key).second)
      throw archive_error("requests a file that was not offered, or one file twice");
    loop_.send(node.connection,
               message_of(node_message::file, file_content{.key = key, .bytes = bytes_of(file->second)}));
  }
}

void node_pool::compare_fingerprints(node_state& node) {
  if (auto differing = differences(*fingerprint_, node.fingerprint); !differing.empty()) {
    node.reached = stage::loading; // while its connection closes, the node does not count as ready
    return refuse(node.connection, node.name + " at " + node.address, std::move(differing));
  }
  if (layout_)
    start_work(node);
}

void node_pool::start_work(node_state& node) {
  node.reached = stage::at_work;
  loop_.send(node.connection, message_of(node_message::begin, *layout_));
  hooks_.joined(number_of(node));
}

/// Sends the reasons to the node. The node then ends, because another attempt could not succeed.
void node_pool::refuse(connection_id id, const std::string& node, std::vector<std::string> reasons) {
  if (reasons.empty())
    reasons.emplace_back("gave no reason");
  for (const auto& reason : reasons)
    if (layout_)
      log("node " + node + " does not join: it " + reason);
    else
      refused_.push_back({"node " + node, reason});
  const auto first = reasons.front();
  loop_.send(id, message_of(node_message::refusal, node_rejection{.reasons = std::move(reasons)}));
  close(id, first);
}

void node_pool::close(connection_id id, const std::string& reason) {
  closing_.insert(id);
  loop_.close(id, reason);
}

/// Logs each reason once, up to a limit, because peers choose the text and could flood the log.
void node_pool::log_rejection(const std::string& peer, const std::string& reason) {
  if (rejections_.size() >= rejections_max || !rejections_.insert(reason).second)
    return;
  log("peer " + peer + " is rejected: it " + reason);
  if (rejections_.size() == rejections_max)
    log("other reasons for rejecting peers are not reported");
}

void node_pool::closed(connection_id id, const std::string& peer, const std::string& error_text, bool may_retry) {
  const std::lock_guard hold(mutex_);
  peers_.erase(id);
  closing_.erase(id);
  changed_.notify_all();
  auto* const node = node_of(id);
  if (!node) {
    if (!may_retry) {
      ++rejected_peers_;
      log_rejection(peer, error_text);
    }
    return;
  }
  node->before = sum_of(node->before, loop_.figures(id));
  node->connection = 0;
  const bool was_at_work = node->reached == stage::at_work;
  node->reached = stage::away;
  if (was_at_work)
    hooks_.lost(number_of(*node), error_text);
}

} // namespace mneme

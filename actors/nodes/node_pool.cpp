#include "actors/nodes/node_pool.hpp"
#include "runtime/base/failure_of.hpp"
#include <algorithm>
#include <fstream>
namespace mneme {
namespace {

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::filesystem::file_size(path)));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file)
    throw std::runtime_error("'" + path.string() + "' cannot be read any more");
  return bytes;
}

connection_figures sum_of(const connection_figures& a, const connection_figures& b) {
  return {.bytes_sent = a.bytes_sent + b.bytes_sent,
          .bytes_received = a.bytes_received + b.bytes_received,
          .message_bytes_given = a.message_bytes_given + b.message_bytes_given,
          .message_bytes_sent = a.message_bytes_sent + b.message_bytes_sent};
}

} // namespace

node_pool::node_pool(node_pool_settings settings)
    : settings_(std::move(settings)), loop_(settings_.identity, settings_.limits, *this) {
  for (const auto& address : settings_.addresses)
    nodes_.push_back({.address = address});
}

// -- the run's thread -------------------------------------------------------------------------------------------------

expected<void> node_pool::connect() {
  static_cast<void>(program_facts()); // reads all of the program's file, for which a node would not wait
  std::unique_lock hold(mutex_);
  for (auto& node : nodes_)
    if (const auto place = loop_.place_of(node.address)) {
      node.place = *place;
      node.reached = stage::connecting;
      node.connection = loop_.connect(node.place);
    } else {
      node.wrong.push_back(place.error().front().text);
    }
  changed_.wait(hold, [this] {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const known_node& node) { return node.reached >= stage::greeted || !node.wrong.empty(); });
  });
  if (any_wrong())
    return tl::unexpected(all_wrong());
  return {};
}

void node_pool::offer(node_offer offered) {
  const std::lock_guard hold(mutex_);
  offer_ = std::move(offered);
  for (auto& node : nodes_) {
    node.reached = stage::loading;
    loop_.send(node.connection, message_of(node_message::offer, offer_->offer));
  }
}

expected<void> node_pool::await_ready(named_facts world, std::chrono::milliseconds patience) {
  std::unique_lock hold(mutex_);
  world_ = std::move(world);
  for (auto& node : nodes_)
    if (node.reached == stage::ready)
      compare_worlds(node);
  const bool have_said = changed_.wait_for(hold, patience, [this] {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const known_node& node) { return node.reached == stage::ready || !node.wrong.empty(); });
  });
  for (auto& node : nodes_)
    if (!have_said && node.reached != stage::ready && node.wrong.empty())
      node.wrong.push_back("has not loaded the scenario " + std::to_string(patience.count() / 1000) +
                           " s after the run; expected that within worker.node_answer");
  if (any_wrong())
    return tl::unexpected(all_wrong());
  return {};
}

void node_pool::begin(const node_layout& layout, node_pool_hooks hooks) {
  const std::lock_guard hold(mutex_);
  layout_ = layout;
  hooks_ = std::move(hooks);
  for (auto& node : nodes_)
    if (node.reached == stage::ready) {
      node.reached = stage::at_work;
      loop_.send(node.connection, message_of(node_message::begin, *layout_));
    } else {
      hooks_.lost(number_of(node), node.wrong.empty() ? "was lost before the run began" : node.wrong.front());
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

void node_pool::drop(node_number number, const std::string& why) {
  const std::lock_guard hold(mutex_);
  nodes_.at(number).is_dropped = true;
  loop_.drop(nodes_.at(number).connection, why);
}

void node_pool::reconnect(node_number number) {
  const std::lock_guard hold(mutex_);
  auto& node = nodes_.at(number);
  if (node.reached != stage::away || !node.is_named || node.is_dropped)
    return;
  node.wrong.clear();
  node.sent_files.clear();
  node.reached = stage::connecting;
  node.connection = loop_.connect(node.place);
}

diagnostics node_pool::rename(const std::vector<node_address>& addresses) {
  diagnostics wrong;
  std::vector<std::pair<node_address, node_place>> reached;
  for (const auto& address : addresses)
    if (const auto place = loop_.place_of(address))
      reached.emplace_back(address, *place);
    else
      wrong.push_back(place.error().front());
  const std::lock_guard hold(mutex_);
  for (auto& node : nodes_) {
    node.is_named = std::find(addresses.begin(), addresses.end(), node.address) != addresses.end();
    node.is_dropped = node.is_dropped && node.is_named; // who is named again later is given another try
    if (!node.is_named && node.reached != stage::away)
      loop_.close(node.connection, "is not named any more");
  }
  for (const auto& [address, place] : reached) {
    const auto known = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&address = address](const auto& node) { return node.address == address; });
    if (known == nodes_.end())
      nodes_.push_back({.address = address, .place = place});
  }
  return wrong;
}

std::size_t node_pool::size() {
  const std::lock_guard hold(mutex_);
  return nodes_.size();
}

void node_pool::interrupt() {
  const std::lock_guard hold(mutex_);
  for (auto& node : nodes_)
    if (node.reached == stage::at_work)
      loop_.send(node.connection, message_of(node_message::interrupt, node_refusal{}));
}

std::int64_t node_pool::workers() {
  const std::lock_guard hold(mutex_);
  std::int64_t sum = 0;
  for (const auto& node : nodes_)
    sum += node.workers;
  return sum;
}

node_view node_pool::view(node_number number) {
  const std::lock_guard hold(mutex_);
  const auto& node = nodes_.at(number);
  return {.address = node.address.text(),
          .name = node.name,
          .workers = node.workers,
          .is_ready = node.reached >= stage::ready,
          .is_named = node.is_named,
          .is_dropped = node.is_dropped,
          .traffic = sum_of(node.before, loop_.figures(node.connection))};
}

bool node_pool::any_wrong() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const known_node& node) { return !node.wrong.empty(); });
}

diagnostics node_pool::all_wrong() const {
  diagnostics problems;
  for (const auto& node : nodes_)
    for (const auto& text : node.wrong)
      problems.push_back({"node " + node.address.text(), text});
  return problems;
}

// -- the connections' thread ------------------------------------------------------------------------------------------

node_pool::known_node* node_pool::node_of(connection_id id) {
  for (auto& node : nodes_)
    if (node.connection == id && node.reached != stage::away)
      return &node;
  return nullptr;
}

void node_pool::opened(connection_id id, const std::string& peer, bool /*accepted*/) {
  const std::lock_guard hold(mutex_);
  if (auto* const node = node_of(id)) {
    node->peer = peer;
    loop_.send(id,
               message_of(node_message::greeting, node_greeting{.role = peer_role::run, .program = program_facts()}));
  }
}

void node_pool::received(connection_id id, archive::buffer message) {
  std::unique_lock hold(mutex_);
  auto* const node = node_of(id);
  if (!node)
    return;
  const bool is_report = !message->empty() && message->front() == static_cast<std::byte>(node_message::report);
  if (node->reached == stage::at_work && is_report) {
    const auto number = number_of(*node);
    hold.unlock(); // begin() is over: hooks change no more
    return hooks_.reported(number, std::move(message));
  }
  const auto bytes = message->size();
  const auto before = node->reached;
  take(*node, message);
  loop_.consumed(id, bytes);
  const bool came_back = before != stage::at_work && node->reached == stage::at_work;
  const auto number = number_of(*node);
  changed_.notify_all();
  hold.unlock();
  if (came_back)
    hooks_.regained(number);
}

void node_pool::take(known_node& node, const archive::buffer& message) {
  const auto why = failure_of([&] {
    auto content = reader_of(message);
    auto kind = node_message::greeting;
    content(kind);
    take(node, kind, content);
    content.expect_end();
  });
  if (why.empty())
    return;
  node.is_dropped = true;
  refuse(node, {"sends a message that " + why});
}

void node_pool::take(known_node& node, node_message kind, archive& content) {
  if (kind == node_message::refusal) {
    node_refusal in;
    content(in);
    for (auto& reason : in.reasons)
      reason = printable_ascii(reason);
    return refuse(node, std::move(in.reasons));
  }
  if (kind == node_message::greeting && node.reached == stage::connecting)
    return take_greeting(node, content);
  if (kind == node_message::wanted_files && node.reached == stage::loading) {
    wanted_files in;
    content(in);
    return send_files(node, in.keys);
  }
  if (kind == node_message::ready && node.reached == stage::loading) {
    ready_node in;
    content(in);
    for (auto& [name, value] : in.world)
      value = printable_ascii(value);
    node.world = std::move(in.world);
    node.reached = stage::ready;
    if (world_)
      compare_worlds(node);
    return;
  }
  throw archive_error("has no place here (kind " + std::to_string(static_cast<int>(kind)) + ")");
}

void node_pool::take_greeting(known_node& node, archive& content) {
  node_greeting in;
  content(in);
  if (in.role != peer_role::node || in.workers < 1 || in.workers > node_workers_max)
    throw archive_error("does not come from a node");
  node.name = printable_ascii(in.name);
  for (auto& [name, value] : in.program)
    value = printable_ascii(value);
  if (auto differing = differences(program_facts(), in.program); !differing.empty())
    return refuse(node, std::move(differing));
  node.workers = in.workers;
  node.reached = stage::greeted;
  loop_.trust(node.connection);
  if (layout_) { // it comes back
    node.reached = stage::loading;
    loop_.send(node.connection, message_of(node_message::offer, offer_->offer));
  }
}

void node_pool::send_files(known_node& node, const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    const auto file = offer_->files.find(key);
    if (file == offer_->files.end() || !node.sent_files.insert(key).second)
      throw archive_error("asks for a file that was not offered, or twice for one");
    loop_.send(node.connection,
               message_of(node_message::file, file_content{.key = key, .bytes = bytes_of(file->second)}));
  }
}

void node_pool::compare_worlds(known_node& node) {
  if (auto differing = differences(*world_, node.world); !differing.empty())
    return refuse(node, std::move(differing));
  if (layout_) {
    node.reached = stage::at_work;
    loop_.send(node.connection, message_of(node_message::begin, *layout_));
  }
}

void node_pool::refuse(known_node& node, std::vector<std::string> reasons) {
  node.wrong = std::move(reasons);
  if (node.wrong.empty())
    node.wrong.emplace_back("takes no part, and does not say why");
  loop_.drop(node.connection, node.wrong.front());
}

void node_pool::closed(connection_id id, const std::string& /*peer*/, const std::string& why) {
  std::unique_lock hold(mutex_);
  auto* const node = node_of(id);
  if (!node)
    return;
  node->before = sum_of(node->before, loop_.figures(id));
  node->connection = 0;
  if (node->wrong.empty())
    node->wrong.push_back(why);
  const auto number = number_of(*node);
  const bool is_lost = layout_.has_value();
  node->reached = stage::away;
  changed_.notify_all();
  hold.unlock();
  if (is_lost)
    hooks_.lost(number, why);
}

} // namespace mneme

#include "runtime/transport/connection_loop.hpp"
#include "runtime/transport/polling.hpp"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
namespace mneme {
namespace {

std::string system_text() { return std::strerror(errno); }

owned_descriptor new_socket(const socket_address& address) {
  return owned_descriptor(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// Polls before it sleeps, because waking a thread takes as long as the transfer of many messages.
void wait_for_events(std::vector<pollfd>& awaited, int wait_ms) {
  const auto until = connection::clock::now() + polling_time(tuning::io_spin_time);
  while (connection::clock::now() < until) {
    if (::poll(awaited.data(), awaited.size(), 0) != 0)
      return;
    std::this_thread::yield();
  }
  ::poll(awaited.data(), awaited.size(), wait_ms);
}

void send_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

} // namespace

connection_loop::connection_loop(tls_identity_ref identity, const connection_limits& limits,
                                 connection_watcher& watcher)
    : identity_(std::move(identity)), limits_(limits), watcher_(watcher),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), thread_([this](const std::stop_token& stop) { run(stop); }) {
  std::signal(SIGPIPE, SIG_IGN); // OpenSSL writes without MSG_NOSIGNAL, and a lost peer must only cause an error
}

connection_loop::~connection_loop() {
  thread_.request_stop();
  ::eventfd_write(wake_.get(), 1);
}

// -- from other threads -----------------------------------------------------------------------------------------------

expected<resolved_node> connection_loop::place_of(const node_address& address) const {
  auto addresses = resolved(address);
  if (!addresses)
    return tl::unexpected(addresses.error());
  return place_of(address, std::move(*addresses));
}

expected<resolved_node> connection_loop::place_of(const node_address& address,
                                                  std::vector<socket_address> addresses) const {
  const bool is_local =
      std::all_of(addresses.begin(), addresses.end(), [](const socket_address& place) { return place.is_loopback(); });
  if (!identity_ && !is_local)
    return failed(
        address.text(),
        "is not on the loopback (127.0.0.1, ::1), where connections need a secret or certificates; expected "
        "MNEME_SECRET=$(openssl rand -hex 32) in the environment of all processes, or --cert, --key and --ca");
  return resolved_node{.host = address.host, .addresses = std::move(addresses)};
}

expected<std::uint16_t> connection_loop::listen(const node_address& address) {
  const auto places = place_of(address);
  if (!places)
    return tl::unexpected(places.error());
  const auto* const place = &places->addresses.front();
  auto socket = new_socket(*place);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket.get() < 0 || ::bind(socket.get(), place->get(), place->size) != 0 || ::listen(socket.get(), 128) != 0) {
    const std::string fix = errno == EADDRINUSE ? "; choose another port, or end the program that uses it" : "";
    return failed(address.text(), "cannot be listened on: " + system_text() + fix);
  }
  socket_address bound;
  bound.size = sizeof bound.storage;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size);
  const auto port = bound.storage.ss_family == AF_INET6
                        ? reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port
                        : reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port;
  {
    const std::lock_guard hold(mutex_);
    listener_ = std::move(socket);
  }
  ::eventfd_write(wake_.get(), 1);
  return ntohs(port);
}

connection_id connection_loop::connect(resolved_node place) {
  connection_id opened = 0;
  {
    const std::lock_guard hold(mutex_);
    opened = next_++;
    orders_.emplace_back(to_connect{opened, std::move(place)});
  }
  ::eventfd_write(wake_.get(), 1);
  return opened;
}

void connection_loop::add(order request) {
  bool first = false;
  {
    const std::lock_guard hold(mutex_);
    first = orders_.empty();
    orders_.push_back(std::move(request));
  }
  if (first)
    ::eventfd_write(wake_.get(), 1);
}

void connection_loop::consumed(connection_id id, std::size_t bytes) {
  {
    const std::lock_guard hold(mutex_);
    auto& sum = consumed_[id];
    sum += bytes;
    if (sum < credit_bytes_min)
      return;
    bytes = std::exchange(sum, 0);
  }
  add(used{id, bytes});
}

void connection_loop::send(connection_id id, archive message) {
  {
    const std::lock_guard hold(mutex_);
    figures_[id].message_bytes_given += message.size();
  }
  auto shared = std::make_shared<const archive>(std::move(message));
  if (!sent_at_once(id, shared))
    add(to_send{id, std::move(shared)});
}

/// Returns true if the connection has accepted the message. The loop's thread sends any unsent rest of it.
bool connection_loop::sent_at_once(connection_id id, std::shared_ptr<const archive>& message) {
  if (message->size() > at_once_bytes_max || std::this_thread::get_id() == thread_.get_id())
    return false;
  const std::unique_lock hold(held_mutex_, std::try_to_lock);
  if (!hold.owns_lock())
    return false;
  {
    const std::lock_guard hold_orders(mutex_);
    if (!orders_.empty()) // earlier orders have to be executed first
      return false;
  }
  const auto held = held_.find(id);
  if (held == held_.end() || !held->second.stream->can_send_at_once())
    return false;
  auto& stream = *held->second.stream;
  stream.send(std::move(message));
  try {
    stream.send_now(connection::clock::now());
  } catch (const std::exception& e) {
    held->second.broken = e.what(); // only the loop's thread reports errors
  }
  record_figures();
  if (stream.waiting_bytes() > 0 || held->second.broken)
    ::eventfd_write(wake_.get(), 1);
  return true;
}

connection_stats connection_loop::figures(connection_id id) {
  const std::lock_guard hold(mutex_);
  const auto entry = figures_.find(id);
  return entry == figures_.end() ? connection_stats{} : entry->second;
}

// -- the thread -------------------------------------------------------------------------------------------------------

void connection_loop::run(const std::stop_token& stop) {
  std::vector<pollfd> awaited;
  std::vector<connection_id> ids;
  while (!stop.stop_requested()) {
    std::unique_lock hold_connections(held_mutex_);
    std::vector<order> orders;
    {
      const std::lock_guard hold(mutex_);
      orders.swap(orders_);
    }
    for (auto& request : orders)
      carry_out(request);
    awaited.assign({{.fd = wake_.get(), .events = POLLIN, .revents = 0}});
    {
      const std::lock_guard hold(mutex_);
      awaited.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    }
    ids.clear();
    for (const auto& [id, held] : held_) {
      awaited.push_back({.fd = held.stream->socket(), .events = held.stream->awaited_events(), .revents = 0});
      ids.push_back(id);
    }
    const auto wait = wait_ms(connection::clock::now());
    hold_connections.unlock();
    wait_for_events(awaited, wait);
    hold_connections.lock();
    if (awaited[0].revents != 0) {
      eventfd_t count = 0;
      ::eventfd_read(wake_.get(), &count);
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (const auto held = held_.find(ids[i]); held != held_.end()) {
        if (awaited[i + 2].revents != 0)
          serve(ids[i], held->second);
        if (const auto still = held_.find(ids[i]); still != held_.end())
          check_connection(ids[i], still->second);
      }
    if (awaited[1].revents != 0)
      accept_all(awaited[1].fd);
    record_figures();
  }
}

int connection_loop::wait_ms(connection::clock::time_point now) const {
  auto next = now + std::chrono::seconds(1);
  for (const auto& [id, held] : held_)
    next = std::min(next, held.stream->next_timeout());
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count() + 1));
}

void connection_loop::carry_out(order& request) {
  if (auto* const connecting = std::get_if<to_connect>(&request))
    return carry_out(*connecting);
  const auto id = std::visit([](const auto& named) { return named.id; }, request);
  const auto entry = held_.find(id);
  if (entry == held_.end()) // the connection has ended in the meantime
    return;
  auto& stream = *entry->second.stream;
  if (std::holds_alternative<trusted>(request))
    stream.mark_authenticated(connection::clock::now());
  else if (auto* const message = std::get_if<to_send>(&request))
    stream.send(std::move(message->message));
  else if (const auto* const done = std::get_if<used>(&request))
    stream.consumed(done->bytes);
  else {
    auto& end = std::get<ended>(request);
    entry->second.closing = std::move(end.reason);
    entry->second.closes_at_once = end.at_once;
  }
}

void connection_loop::carry_out(to_connect& request) {
  auto& addresses = request.place.addresses;
  std::string peer = request.place.host, reason = "has no address";
  while (!addresses.empty()) {
    const auto address = addresses.front();
    addresses.erase(addresses.begin());
    peer = address.text();
    auto socket = new_socket(address);
    send_at_once(socket.get());
    const bool done = ::connect(socket.get(), address.get(), address.size) == 0;
    if (done || errno == EINPROGRESS) {
      held_[request.id] = {.stream = std::make_unique<connection>(std::move(socket), identity_, request.place.host,
                                                                  !done, limits_, connection::clock::now()),
                           .peer = peer,
                           .others = std::move(request.place)};
      return;
    }
    reason = "cannot be reached: " + system_text();
  }
  watcher_.closed(request.id, peer, reason, true);
}

void connection_loop::accept_all(int listener) {
  for (;;) {
    socket_address peer;
    peer.size = sizeof peer.storage;
    owned_descriptor socket(
        ::accept4(listener, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0)
      return;
    take_in(std::move(socket), peer);
  }
}

void connection_loop::take_in(owned_descriptor socket, const socket_address& peer) {
  connection_id id = 0;
  {
    const std::lock_guard hold(mutex_);
    id = next_++;
  }
  evict_unauthenticated();
  send_at_once(socket.get());
  held_[id] = {.stream = std::make_unique<connection>(std::move(socket), identity_, "", false, limits_,
                                                      connection::clock::now()),
               .peer = peer.text(),
               .accepted = true};
}

/// Keeps the number of unauthenticated connections below its limit: closes the oldest connection of the address that
/// has the most unauthenticated connections. Silent peers thus cannot prevent others from connecting.
void connection_loop::evict_unauthenticated() {
  std::map<std::string, std::vector<connection_id>> strangers; // connections by address, oldest first
  std::size_t count = 0;
  for (const auto& [id, held] : held_)
    if (held.accepted && !held.stream->is_trusted()) {
      strangers[held.peer.substr(0, held.peer.rfind(':'))].push_back(id);
      ++count;
    }
  if (count < unauthenticated_max)
    return;
  const auto most = std::max_element(strangers.begin(), strangers.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  end(most->second.front(), "has not identified itself, while too many other peers connect");
}

void connection_loop::serve(connection_id id, held_connection& held) {
  std::string reason;
  bool may_retry = true;
  try {
    held.stream->process_io(connection::clock::now());
  } catch (const incompatible_peer& e) {
    reason = e.what();
    may_retry = false;
  } catch (const std::exception& e) { // includes lack of memory; other connections continue
    reason = e.what();
  }
  if (held.stream->has_begun() && !std::exchange(held.is_open_reported, true))
    watcher_.opened(id, held.peer, held.accepted);
  for (auto& message : held.stream->take_messages())
    watcher_.received(id, std::move(message));
  if (reason.empty())
    return;
  if (held.closing)
    end(id, std::string(*held.closing));
  else
    end(id, reason, may_retry);
}

void connection_loop::check_connection(connection_id id, held_connection& held) {
  auto& stream = *held.stream;
  const auto now = connection::clock::now();
  try {
    stream.check_timeouts(now);
  } catch (const protocol_error& e) {
    return end(id, held.closing ? std::string(*held.closing) : e.what());
  }
  if (held.broken) {
    const auto reason = *held.broken;
    serve(id, held); // a message that arrived earlier may contain the peer's reason
    if (held_.contains(id))
      end(id, reason);
    return;
  }
  if (!held.closing || stream.has_finished_sending())
    return;
  if (held.closes_at_once || !stream.is_open())
    end(id, std::string(*held.closing));
  else if (stream.waiting_bytes() == 0)
    stream.finish_sending(now);
}

void connection_loop::end(connection_id id, const std::string& reason, bool may_retry) {
  const auto entry = held_.find(id);
  if (!entry->second.stream->is_connected() && !entry->second.others.addresses.empty() && !entry->second.closing) {
    to_connect next{id, std::move(entry->second.others)};
    held_.erase(entry);
    return carry_out(next);
  }
  record_figures();
  const auto peer = entry->second.peer;
  {
    const std::lock_guard hold(mutex_);
    consumed_.erase(id);
    if (!entry->second.stream->is_trusted()) // nodes may retry to join without limit
      figures_.erase(id);
  }
  held_.erase(entry);
  watcher_.closed(id, peer, reason, may_retry);
}

void connection_loop::record_figures() {
  const std::lock_guard hold(mutex_);
  for (const auto& [id, held] : held_) {
    auto& known = figures_[id];
    known.bytes_sent = held.stream->bytes_sent();
    known.bytes_received = held.stream->bytes_received();
    known.message_bytes_sent = held.stream->message_bytes_sent();
  }
}

} // namespace mneme

#include "tools/live/http_limits.hpp"
#include "tools/live/http_head.hpp"
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
namespace mneme {
namespace {

using clock = std::chrono::steady_clock;

int milliseconds_until(clock::time_point then) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

/// Task queue that runs tasks immediately, because the accepting thread only forwards connections.
class no_queue final : public httplib::TaskQueue {
public:
  using taken = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr)); // the result is void, and bool since
                                                                                // version 0.14
  taken enqueue(std::function<void()> hand_on) override {
    hand_on();
    return static_cast<taken>(true);
  }
  void shutdown() override {}
};

/// Stream of a received request and its response. In an endless response, each piece has its own time limit.
class answered_stream final : public httplib::Stream {
public:
  answered_stream(socket_t connection, std::string_view head, bool is_stream)
      : connection_(connection), head_(head), is_stream_(is_stream),
        until_(clock::now() + bounded_http_server::answer_max) {}

  [[nodiscard]] bool is_readable() const override { return !head_.empty(); }
  [[nodiscard]] bool is_writable() const override {
    pollfd peer{.fd = connection_, .events = POLLOUT, .revents = 0};
    return ::poll(&peer, 1, 0) >= 0 && (peer.revents & (POLLERR | POLLHUP)) == 0;
  }
  ssize_t read(char* to, std::size_t size) override {
    const auto count = std::min(size, head_.size());
    head_.copy(to, count);
    head_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (is_stream_)
      until_ = clock::now() + bounded_http_server::answer_max;
    for (std::size_t sent = 0; sent < size;) {
      const auto count = ::send(connection_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0)
        sent += static_cast<std::size_t>(count);
      else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !waited())
        return -1;
    }
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {} // not used
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return connection_; }

private:
  /// Waits until the connection is writable. Returns false after the time limit of the response.
  bool waited() {
    pollfd peer{.fd = connection_, .events = POLLOUT, .revents = 0};
    const auto left = milliseconds_until(until_);
    return left > 0 && ::poll(&peer, 1, left) > 0;
  }
  socket_t connection_;
  std::string_view head_;
  bool is_stream_;
  clock::time_point until_;
};

/// Constant-time comparison, so that timing reveals nothing about the token.
bool same_text(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ (b.empty() ? '\0' : b[i % b.size()]));
  return difference == 0;
}

void close_connection(socket_t connection) {
  ::shutdown(connection, SHUT_RDWR);
  ::close(connection);
}

/// Queue of connections with complete requests, and the threads that answer them.
class answering_threads {
public:
  answering_threads(std::size_t threads, std::function<void(socket_t, const std::string&)> answer)
      : answer_(std::move(answer)) {
    for (std::size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this] { work(); });
  }
  answering_threads(const answering_threads&) = delete;
  answering_threads& operator=(const answering_threads&) = delete;
  ~answering_threads() {
    {
      const std::lock_guard hold(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_)
      thread.join();
    for (const auto& [connection, head] : requests_)
      close_connection(connection);
  }
  /// Enqueues a connection with its request. Returns false if the queue is full.
  bool take(socket_t connection, std::string head) {
    {
      const std::lock_guard hold(mutex_);
      if (requests_.size() >= bounded_http_server::connections_waiting_max)
        return false;
      requests_.emplace_back(connection, std::move(head));
    }
    changed_.notify_one();
    return true;
  }

private:
  void work() {
    for (;;) {
      std::unique_lock hold(mutex_);
      changed_.wait(hold, [this] { return ends_ || !requests_.empty(); });
      if (ends_)
        return;
      const auto [connection, head] = std::move(requests_.front());
      requests_.pop_front();
      hold.unlock();
      answer_(connection, head);
    }
  }
  std::function<void(socket_t, const std::string&)> answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<socket_t, std::string>> requests_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

} // namespace

/// Connections with incomplete requests, all polled by one thread.
class bounded_http_server::waiting_room {
public:
  waiting_room(const http_limits& limits, std::function<void(socket_t, const std::string&)> answer)
      : limits_(limits), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), threads_(limits.threads, std::move(answer)),
        listener_([this] { listen(); }) {}
  waiting_room(const waiting_room&) = delete;
  waiting_room& operator=(const waiting_room&) = delete;
  ~waiting_room() {
    ends_ = true;
    ring();
    listener_.join();
    for (const auto& place : places_)
      close_connection(place.connection);
    ::close(wake_);
  }

  void enter(socket_t connection) {
    {
      const std::lock_guard hold(mutex_);
      places_.push_back({.connection = connection, .until = clock::now() + silent_max});
      if (places_.size() > connections_waiting_max) {      // close the oldest incomplete request
        ::shutdown(places_.front().connection, SHUT_RDWR); // the polling thread frees it
        places_.front().until = {};
      }
    }
    ring();
  }
  /// Waits until another connection may be accepted. Until then new connections stay in the system's backlog.
  void await_place() {
    std::unique_lock hold(mutex_);
    left_.wait_for(hold, silent_max, [this] { return ends_ || places_.size() < connections_waiting_max + 16; });
  }

private:
  struct place {
    socket_t connection = -1;
    clock::time_point until{};
    std::string arrived{};
  };

  void ring() const {
    const std::uint64_t rings = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &rings, sizeof rings);
  }

  void listen() {
    while (!ends_) {
      std::vector<pollfd> polled{{.fd = wake_, .events = POLLIN, .revents = 0}};
      auto until = clock::now() + silent_max;
      {
        const std::lock_guard hold(mutex_);
        for (const auto& place : places_) {
          polled.push_back({.fd = place.connection, .events = POLLIN, .revents = 0});
          until = std::min(until, place.until);
        }
      }
      ::poll(polled.data(), polled.size(), milliseconds_until(until));
      std::uint64_t rung = 0;
      [[maybe_unused]] const auto read = ::read(wake_, &rung, sizeof rung);
      const std::lock_guard hold(mutex_);
      for (std::size_t i = 1; i < polled.size(); ++i) // only this thread removes entries
        if (polled[i].revents != 0)
          hear(places_[i - 1]);
      const auto now = clock::now();
      std::erase_if(places_, [&](const place& waiting) {
        if (waiting.connection >= 0 && waiting.until <= now)
          close_connection(waiting.connection);
        return waiting.connection < 0 || waiting.until <= now;
      });
      left_.notify_all();
    }
  }

  /// Reads received bytes. Passes a connection with a complete request to the answering threads.
  void hear(place& waiting) {
    std::array<char, 4096> bytes{};
    const auto count = ::recv(waiting.connection, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (count <= 0) {
      waiting.until = {};
      return;
    }
    waiting.arrived.append(bytes.data(), static_cast<std::size_t>(count));
    auto head = read_http_head(waiting.arrived, limits_.this_machine_only);
    if (head.verdict == http_verdict::unfinished)
      return;
    if (head.verdict == http_verdict::whole && threads_.take(waiting.connection, std::move(head.text))) {
      waiting.connection = -1;
      return;
    }
    if (head.verdict == http_verdict::refused) [[maybe_unused]]
      const auto sent = ::send(waiting.connection, head.answer.data(), head.answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    waiting.until = {};
  }

  const http_limits limits_;
  const int wake_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::condition_variable left_;
  std::deque<place> places_; // oldest first
  answering_threads threads_;
  std::thread listener_;
};

bounded_http_server::bounded_http_server(const http_limits& limits)
    : room_(std::make_unique<waiting_room>(
          limits, [this](socket_t connection, const std::string& head) { answer(connection, head); })) {
  new_task_queue = [] { return new no_queue; };
  set_socket_options([](int socket) { // the library's default lets other programs share the port
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

bounded_http_server::~bounded_http_server() = default;

std::optional<int> bounded_http_server::start(const std::string& host, int port, const char* thread_name) {
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (bound <= 0)
    return std::nullopt;
  listener_ = std::thread([this, thread_name] {
    ::pthread_setname_np(::pthread_self(), thread_name);
    listen_after_bind();
  });
  while (!is_running()) // stop() has no effect while the server is not running yet
    std::this_thread::yield();
  return bound;
}

void bounded_http_server::end() {
  stop();
  if (listener_.joinable())
    listener_.join();
}

bool bounded_http_server::process_and_close_socket(socket_t connection) {
  room_->enter(connection);
  room_->await_place();
  return true;
}

void bounded_http_server::answer(socket_t connection, const std::string& head) {
  const bool is_stream = head.starts_with("GET /events");
  answered_stream stream(connection, head, is_stream);
  bool closed = false;
  const auto process = [&](auto& server) { // later versions of the library also need the addresses
    if constexpr (requires { server.process_request(stream, "", 0, "", 0, true, closed, nullptr); })
      server.process_request(stream, "", 0, "", 0, true, closed, nullptr);
    else
      server.process_request(stream, true, closed, nullptr);
  };
  process(*this);
  close_connection(connection);
}

bool is_authorized(const httplib::Request& request, const std::string& token) {
  return token.empty() || same_text(request.get_header_value("Authorization"), "Bearer " + token) ||
         same_text(request.get_param_value("token"), token);
}

void refuse_unauthorized(httplib::Response& response) {
  response.status = 401;
  response.set_header("WWW-Authenticate", "Bearer");
  response.set_content("a token is needed: ?token=TOKEN, or the header \"Authorization: Bearer TOKEN\"\n",
                       "text/plain");
}

} // namespace mneme

#include "runtime/live/http_limits.hpp"
#include <condition_variable>
#include <mutex>
namespace mneme {
namespace {

constexpr std::size_t request_bytes_max = 4096;

/// Threads with a queue of connections that is never long. The library's own takes all that come: a thousand that say
/// nothing would leave a run of 1,024 file descriptors none for its checkpoints.
class short_queue final : public httplib::TaskQueue {
public:
  explicit short_queue(std::size_t threads) : threads_(threads) {}

  /// Called by the thread that accepts, which waits here while the queue is full.
  void enqueue(std::function<void()> answer) override {
    std::unique_lock hold(mutex_);
    room_.wait(hold, [this] { return waiting_ < connections_waiting_max; });
    ++waiting_;
    threads_.enqueue([this, act = std::move(answer)] {
      {
        const std::lock_guard taken(mutex_);
        --waiting_;
      }
      room_.notify_one();
      act();
    });
  }
  void shutdown() override { threads_.shutdown(); }

private:
  std::mutex mutex_;
  std::condition_variable room_;
  std::size_t waiting_ = 0;
  httplib::ThreadPool threads_;
};

} // namespace

void limit_server(httplib::Server& http, std::size_t threads) {
  http.new_task_queue = [threads] { return new short_queue(threads); };
  http.set_payload_max_length(request_bytes_max);
  http.set_read_timeout(std::chrono::seconds(2));
  http.set_write_timeout(std::chrono::seconds(2));
  http.set_keep_alive_timeout(1);
  http.set_socket_options([](int socket) { // the library's own let other programs share the port
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

} // namespace mneme

// bench_link: measures the transfer of tensors over one loopback connection, like the connection between a run and a
// node. Prints one JSON object.
//   bench_link [--tls] [--seconds S] [--mib SIZE OF A MESSAGE]
#include "runtime/transport/connection_loop.hpp"
#include "tools/bench/bench_seconds.hpp"
#include <ATen/ops/zeros.h>
#include <CLI/CLI.hpp>
#include <atomic>
#include <condition_variable>
#include <fmt/format.h>
#include <sys/resource.h>
using namespace mneme;

namespace {

constexpr std::uint64_t waiting_bytes_max = std::uint64_t{64} << 20;

archive message(std::int64_t tensor_bytes) {
  archive made;
  tensor_map tensors;
  tensors.put("weights", at::zeros({tensor_bytes / 4}));
  made(tensors);
  return made;
}

/// Accepts any peer and discards what it receives.
class end_of_link final : public connection_watcher {
public:
  void opened(connection_id which, const std::string& /*peer*/, bool /*accepted*/) override {
    loop->mark_authenticated(which);
    is_open = true;
  }
  void received(connection_id which, archive::buffer bytes) override {
    archive content(bytes, 0, bytes->size());
    tensor_map tensors;
    content(tensors);
    read += static_cast<std::uint64_t>(tensors.bytes());
    loop->consumed(which, bytes->size());
  }
  void closed(connection_id /*which*/, const std::string& /*peer*/, const std::string& reason,
              bool /*may_retry*/) override {
    is_open = false;
    if (!is_over)
      fmt::print(stderr, "bench_link: {}\n", reason);
  }
  connection_loop* loop = nullptr;
  std::atomic<bool> is_open = false, is_over = false;
  std::atomic<std::uint64_t> read = 0;
};

tls_identity_ref identity() {
  auto name = (std::filesystem::temp_directory_path() / "mneme-link-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  if (const auto made = make_keys(folder); !made)
    throw std::runtime_error(made.error().front().text);
  auto loaded = tls_identity::load(
      {.certificate = folder / "node.pem", .key = folder / "node.key", .authority = folder / "ca.pem"});
  std::filesystem::remove_all(folder);
  return loaded.value();
}

void measure(bool tls, double seconds, std::int64_t tensor_bytes) {
  const auto who = tls ? identity() : nullptr;
  end_of_link near, far;
  connection_loop sender(who, {}, near), receiver(who, {}, far);
  near.loop = &sender;
  far.loop = &receiver;
  const auto port = receiver.listen({.host = "127.0.0.1", .port = 0}).value();
  const auto link = sender.connect(sender.place_of({.host = "127.0.0.1", .port = port}).value());
  while (!near.is_open || !far.is_open)
    std::this_thread::yield();
  const auto began = bench::wall_seconds(), cpu = bench::cpu_seconds();
  const auto made = message(tensor_bytes);
  std::uint64_t sent = 0;
  while (bench::wall_seconds() - began < seconds) {
    if (sender.figures(link).waiting_bytes() < waiting_bytes_max) {
      sender.send(link, made);
      sent += static_cast<std::uint64_t>(tensor_bytes);
    } else
      ::usleep(200);
  }
  while (far.read < sent && far.is_open)
    ::usleep(200);
  const auto took = bench::wall_seconds() - began;
  near.is_over = far.is_over = true;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{{\"bytes_per_second\": {}, \"cpu_seconds\": {}, \"wall_seconds\": {}, \"peak_rss_bytes\": {}}}\n",
             static_cast<double>(far.read) / took, bench::cpu_seconds() - cpu, took, usage.ru_maxrss * 1024);
}

} // namespace

int main(int count, char** words) {
  bool tls = false;
  double seconds = 1.0;
  std::int64_t mib = 1; // typical size of a report of many short jobs
  CLI::App app{"Tensors over a connection on the loopback.", "bench_link"};
  app.add_flag("--tls", tls);
  app.add_option("--seconds", seconds);
  app.add_option("--mib", mib);
  CLI11_PARSE(app, count, words);
  measure(tls, seconds, mib << 20);
}

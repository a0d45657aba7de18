#include "runtime/modules/module_sandbox.hpp"
#include "runtime/modules/sandbox_restrictions.hpp"
#include "runtime/modules/sandbox_start.hpp"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
namespace mneme {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{1} << 16;

struct cell_program {
  std::filesystem::path path{};
  sandbox_start begin = sandbox_start::exec_program;
};

cell_program& program_of_cells() {
  static cell_program program;
  return program;
}

/// Owns a file descriptor.
class open_file {
public:
  explicit open_file(int number) : number_(number) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() { close(); }
  [[nodiscard]] int number() const noexcept { return number_; }
  void close() {
    if (number_ >= 0)
      ::close(std::exchange(number_, -1));
  }

private:
  int number_;
};

sandbox_reply unavailable(const std::string& reason) { return {sandbox_status::not_supported, {reason}, {}}; }
sandbox_reply refused(const std::string& reason) { return {sandbox_status::refused, {reason}, {}}; }

/// Default limits of a sandbox process. They grow with the file size, because probing a large module takes longer.
sandbox_limits limits_for(std::size_t file_bytes, const sandbox_request& question) {
  const auto bytes = static_cast<std::int64_t>(file_bytes);
  return {.seconds = question.seconds > 0 ? question.seconds : 60 + (bytes >> 20),
          .memory_bytes = question.memory_bytes > 0 ? question.memory_bytes : (std::int64_t{4} << 30) + 8 * bytes};
}

/// Reads from `file` up to its end or answer_bytes_max bytes. Returns false if no bytes arrive for silent_seconds_max
/// seconds.
bool read_all(int file, std::int64_t silent_seconds_max, std::string& into) {
  constexpr int second = 1000; // in milliseconds, for poll()
  std::int64_t silent_seconds = 0;
  while (into.size() < answer_bytes_max && silent_seconds < silent_seconds_max) {
    pollfd ready{.fd = file, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, second) <= 0) {
      ++silent_seconds;
      continue;
    }
    char piece[4096];
    const auto count = ::read(file, piece, sizeof piece);
    if (count == 0)
      return true;
    if (count > 0)
      into.append(piece, static_cast<std::size_t>(count));
  }
  return silent_seconds < silent_seconds_max;
}

int end_of(pid_t id) {
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find('\0'), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Makes a reply that accepts the module, from the numbers of the probe. Rejects the module if a number is out of
/// range.
sandbox_reply accepted(const std::vector<std::string>& numbers) {
  constexpr std::int64_t width_max = std::int64_t{1} << 32, rows_max = 16, bytes_max = std::int64_t{1} << 50;
  const auto number = [&](std::size_t i, std::int64_t low, std::int64_t high) -> std::int64_t {
    std::int64_t value = 0;
    if (i >= numbers.size() ||
        std::from_chars(numbers[i].data(), numbers[i].data() + numbers[i].size(), value).ec != std::errc{})
      return -1;
    return value >= low && value <= high ? value : -1;
  };
  const probe_result result{
      .width = number(0, 1, width_max), .rows_at_once = number(1, 1, rows_max), .row_bytes = number(2, 0, bytes_max)};
  if (result.width < 0 || result.rows_at_once < 0 || result.row_bytes < 0)
    return refused("its trial process returned no result");
  return {.verdict = sandbox_status::accepted, .found = result};
}

/// Interprets the output and exit status of a sandbox process.
sandbox_reply answer_of(const std::string& said, int status, const sandbox_limits& limits) {
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    return refused(fmt::format("its trial process took more than {} s of processor time, or was ended by the system",
                               limits.seconds));
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGSYS) // without a handler, SIGSYS ends a process that makes a denied
                                                         // call
    return refused(
        fmt::format("its trial process was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  const int code = WIFSIGNALED(status) ? denied_exit_code : WEXITSTATUS(status);
  if (code == denied_exit_code)
    return refused(fmt::format("it does more than compute: its trial process tried the forbidden system call {}",
                               said.empty() ? "?" : said.substr(said.rfind('!') + 1)));
  if (code != 0 || said.empty())
    return refused(fmt::format("its trial process ended with exit code {}", code));
  auto reasons = parts_of(std::string_view(said).substr(1));
  switch (said[0]) {
  case '+':
    return accepted(reasons);
  case '-':
    return {sandbox_status::refused, std::move(reasons), {}};
  case '?':
    return {sandbox_status::not_supported, std::move(reasons), {}};
  default:
    return refused("its trial process returned no result");
  }
}

} // namespace

void set_probe_program(const std::filesystem::path& program, sandbox_start begin) {
  program_of_cells() = {program, begin};
}

sandbox_reply run_in_sandbox(std::span<const std::uint8_t> file, sandbox_request question) {
  const auto& program = program_of_cells();
  if (program.path.empty())
    return unavailable("this program has no sandbox");
  const auto limits = limits_for(file.size(), question);
  question.seconds = limits.seconds;
  question.memory_bytes = limits.memory_bytes;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return unavailable(std::string("a pipe: ") + std::strerror(errno));
  const open_file from_cell(ends[0]);
  open_file to_us(ends[1]);
  const auto id = program.begin == sandbox_start::fork_if_single_threaded && has_one_thread()
                      ? fork_sandbox(file, question, to_us.number())
                      : exec_sandbox(program.path, file, question, to_us.number());
  if (id < 0)
    return unavailable(fmt::format("{}: {}", program.path.string(), std::strerror(errno)));
  to_us.close();
  std::string said;
  const bool ended = read_all(from_cell.number(), 60 + 20 * limits.seconds, said);
  if (!ended || said.size() >= answer_bytes_max)
    ::kill(id, SIGKILL);
  const auto status = end_of(id);
  if (!ended)
    return refused("its trial process did not end");
  return answer_of(said, status, limits);
}

} // namespace mneme

#include "runtime/modules/module_cell.hpp"
#include "runtime/modules/cell_rights.hpp"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
namespace mneme {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{1} << 16;

std::filesystem::path& cell_program() {
  static std::filesystem::path program;
  return program;
}

/// An open file, closed when it goes.
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

cell_answer unavailable(const std::string& reason) { return {cell_verdict::unavailable, {reason}, {}}; }
cell_answer refused(const std::string& reason) { return {cell_verdict::refused, {reason}, {}}; }

/// A file without a name that holds these bytes, to be read from its begin; -1: the system gives none.
int nameless_file(std::span<const std::uint8_t> bytes) {
  const int file = ::memfd_create("module", MFD_CLOEXEC);
  std::size_t written = 0;
  while (file >= 0 && written < bytes.size()) {
    const auto count = ::write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      ::close(file);
      return -1;
    }
    written += static_cast<std::size_t>(count);
  }
  if (file >= 0)
    ::lseek(file, 0, SEEK_SET);
  return file;
}

/// What a cell may take: most for large modules, whose trial takes long.
cell_limits limits_for(std::size_t file_bytes, const cell_question& question) {
  const auto bytes = static_cast<std::int64_t>(file_bytes);
  return {.seconds = question.seconds > 0 ? question.seconds : 60 + (bytes >> 20),
          .memory_bytes = question.memory_bytes > 0 ? question.memory_bytes : (std::int64_t{4} << 30) + 8 * bytes};
}

std::vector<std::string> words_for(const cell_question& question, const cell_limits& limits) {
  std::vector<std::string> words{cell_program().string(), cell_word};
  for (const auto number : {question.input[0], question.input[1], question.input[2],
                            static_cast<std::int64_t>(question.own_rows), static_cast<std::int64_t>(question.trained),
                            static_cast<std::int64_t>(question.checked), limits.seconds, limits.memory_bytes})
    words.push_back(std::to_string(number));
  return words;
}

/// What a cell finds in its environment: where libraries lie and how they compute, and nothing that is a secret.
std::vector<std::string> environment_of_cell() {
  std::vector<std::string> variables{"OMP_NUM_THREADS=1"};
  for (const char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    for (const auto* const taken :
         {"LD_LIBRARY_PATH=", "ATEN_CPU_", "ONEDNN_", "DNNL_", "MKL_", "GLIBC_TUNABLES=", "MNEME_ARITHMETIC="})
      if (text.starts_with(taken))
        variables.emplace_back(text);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The id of the cell's process, or -1 with errno. @param input, output become its files 0 and 1
pid_t started(std::vector<std::string> words, int input, int output) {
  auto variables = environment_of_cell();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  sigset_t every, none; // a terminal's Ctrl-C is for this process, which waits
  ::sigfillset(&every);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &every);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  pid_t id = -1;
  const int failed = ::posix_spawn(&id, words[0].c_str(), &files, &attributes, pointers_to(words).data(),
                                   pointers_to(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  errno = failed;
  return failed == 0 ? id : -1;
}

/// Everything that comes from `file` until its end, and no more than is taken; false: it was silent for too long.
bool read_all(int file, std::int64_t silent_seconds_max, std::string& into) {
  constexpr int second = 1000; // ms
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

/// An answer with numbers that a trial may find.
cell_answer accepted(const std::vector<std::string>& numbers) {
  constexpr std::int64_t width_max = std::int64_t{1} << 32, rows_max = 16, bytes_max = std::int64_t{1} << 50;
  const auto number = [&](std::size_t i, std::int64_t low, std::int64_t high) -> std::int64_t {
    std::int64_t value = 0;
    if (i >= numbers.size() ||
        std::from_chars(numbers[i].data(), numbers[i].data() + numbers[i].size(), value).ec != std::errc{})
      return -1;
    return value >= low && value <= high ? value : -1;
  };
  const trial_result result{
      .width = number(0, 1, width_max), .rows_at_once = number(1, 1, rows_max), .row_bytes = number(2, 0, bytes_max)};
  if (result.width < 0 || result.rows_at_once < 0 || result.row_bytes < 0)
    return refused("its trial, in a process of its own, gave no answer");
  return {.verdict = cell_verdict::accepted, .found = result};
}

/// What the cell has said, and how it ended.
cell_answer answer_of(const std::string& said, int status, const cell_limits& limits) {
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    return refused(
        fmt::format("its trial took more than {} s of processor time, or was ended by the system", limits.seconds));
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGSYS) // which a denied call sends, where no handler runs
    return refused(fmt::format("its trial, in a process of its own, ended by signal {} ({})", WTERMSIG(status),
                               ::strsignal(WTERMSIG(status))));
  const int code = WIFSIGNALED(status) ? denied_exit_code : WEXITSTATUS(status);
  if (code == denied_exit_code)
    return refused(fmt::format("it reaches beyond its arguments: its trial tried system call {}, which it may not",
                               said.empty() ? "?" : said.substr(said.rfind('!') + 1)));
  if (code != 0 || said.empty())
    return refused(fmt::format("its trial, in a process of its own, ended with exit code {}", code));
  auto reasons = parts_of(std::string_view(said).substr(1));
  switch (said[0]) {
  case '+':
    return accepted(reasons);
  case '-':
    return {cell_verdict::refused, std::move(reasons), {}};
  case '?':
    return {cell_verdict::unavailable, std::move(reasons), {}};
  default:
    return refused("its trial, in a process of its own, gave no answer");
  }
}

} // namespace

void set_cell_program(const std::filesystem::path& program) { cell_program() = program; }

cell_answer ask_cell(std::span<const std::uint8_t> file, const cell_question& question) {
  if (cell_program().empty())
    return unavailable("this program has none");
  const auto limits = limits_for(file.size(), question);
  const open_file input(nameless_file(file));
  int ends[2] = {-1, -1};
  if (input.number() < 0 || ::pipe2(ends, O_CLOEXEC) != 0)
    return unavailable(std::string("memory for its file: ") + std::strerror(errno));
  const open_file from_cell(ends[0]);
  open_file to_us(ends[1]);
  const auto id = started(words_for(question, limits), input.number(), to_us.number());
  if (id < 0)
    return unavailable(fmt::format("{}: {}", cell_program().string(), std::strerror(errno)));
  to_us.close();
  std::string said;
  const bool ended = read_all(from_cell.number(), 60 + 20 * limits.seconds, said);
  if (!ended || said.size() >= answer_bytes_max)
    ::kill(id, SIGKILL);
  const auto status = end_of(id);
  if (!ended)
    return refused("its trial did not end");
  return answer_of(said, status, limits);
}

} // namespace mneme

#include "runtime/results/run_directory.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/data/client_classes.hpp"
#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

tl::unexpected<diagnostics> cannot_create(const fs::path& path, const std::error_code& reason) {
  return failed("", "cannot create the run directory '" + path.string() + "': " + reason.message() +
                        "; choose a folder that can be written with --out");
}

/// Creates the missing parent folders of `path`.
std::error_code make_parents(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), error);
  return error;
}

/// Creates a folder. mkdir() serves as a lock, because exactly one process succeeds. std::filesystem would report
/// success for an existing folder, too.
std::error_code make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) == 0)
    return {};
  return {errno, std::generic_category()};
}

/// Removes a file, which need not exist.
void remove_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error)
    throw std::system_error(error, "cannot remove '" + file.string() + "'");
}

constexpr const char *checkpoints_name = "checkpoint", *models_name = "models", *origin_name = "checkpoint/run.json";
constexpr const char *events_name = "events.csv", *digests_name = "digests.csv", *deliveries_name = "deliveries.csv",
                     *clients_name = "client_accuracy.csv", *client_classes_name = "client_classes.csv";

/// Names of the files that a run writes before its scenario.toml.
const std::set<std::string>& unstarted_run_files() {
  static const std::set<std::string> names{checkpoints_name,    "checkpoint/run.json",    "checkpoint/run.json.part",
                                           "partition.csv",     "partition.csv.part",     "scenario.toml.part",
                                           client_classes_name, "client_classes.csv.part"};
  return names;
}

/// Names of all entries of the folder, up to two levels deep. Empty if it cannot be read.
std::set<std::string> names_below(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    names.insert(at->path().lexically_relative(folder).string());
    if (at.depth() > 0)
      at.disable_recursion_pending();
  }
  return failed ? std::set<std::string>{} : names;
}

/// Locks a folder until the descriptor is closed or the process ends. On file systems that cannot lock folders this has
/// no effect.
expected<open_file> locked(const fs::path& folder) {
  std::optional<open_file> lock;
  if (const auto reason = exception_message_of([&] { lock.emplace(folder, O_RDONLY | O_DIRECTORY); }); !reason.empty())
    return failed("", reason);
  if (::flock(lock->descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return failed("", "another process writes into '" + folder.string() + "'; wait until it ends, or stop it first");
  return std::move(*lock);
}

/// Creates a run's folder together with its start mark and lock, atomically. A process that is killed during this call
/// leaves no empty folder, which would block the next run. No other process can use the folder.
std::error_code make_marked_folder(const fs::path& path, std::optional<expected<open_file>>& lock) {
  static std::atomic<int> attempts{0};
  const auto hidden = path.parent_path() / fmt::format(".{}-{}-{}", path.filename().string(), ::getpid(), attempts++);
  if (auto error = make_folder(hidden))
    return error;
  lock = locked(hidden); // the lock survives a rename
  auto error = make_folder(hidden / checkpoints_name);
  if (!error && ::renameat2(AT_FDCWD, hidden.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0)
    error = {errno, std::generic_category()};
  if (!error)
    return {};
  std::error_code ignored;
  fs::remove_all(hidden, ignored);
  if (error != std::errc::invalid_argument && error != std::errc::function_not_supported)
    return error;
  error = make_folder(path); // some file systems do not support RENAME_NOREPLACE
  if (error)
    return error;
  lock = locked(path);
  return make_folder(path / checkpoints_name);
}

bool is_same_folder(int held, const fs::path& path) {
  struct stat open {
  }, named{};
  return ::fstat(held, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

/// Current path of an open folder, also after a move. Returns "" if it was removed or the path is unknown.
fs::path place_of(int folder) {
  std::error_code none;
  const auto place = fs::read_symlink(fmt::format("/proc/self/fd/{}", folder), none);
  return !none && is_same_folder(folder, place) ? place : fs::path();
}

/// Formats seconds with nine decimals, which represent every virtual time exactly.
void put_seconds(fmt::memory_buffer& to, virtual_time at) {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const std::int64_t ns = at.time_since_epoch().count();
  fmt::format_to(std::back_inserter(to), "{}.{:09}", ns / ns_per_s, ns % ns_per_s);
}

void put(fmt::memory_buffer& to, const event_record& line) {
  put_seconds(to, line.at);
  const auto client = line.client ? std::to_string(line.client->value) : std::string();
  fmt::format_to(std::back_inserter(to), ",{},{},{},{},{},{}\n", line.actor, line.event, client, line.task.value + 1,
                 line.round.value + 1, line.bytes);
}

void put(fmt::memory_buffer& to, const step_digests& line) {
  fmt::format_to(std::back_inserter(to), "{},", line.round);
  put_seconds(to, line.at);
  fmt::format_to(std::back_inserter(to), ",{},{},{}\n", line.deliveries, hex_text(line.model), hex_text(line.run));
}

void put(fmt::memory_buffer& to, const tensor_digest& line) {
  fmt::format_to(std::back_inserter(to), "{},", line.round);
  put_seconds(to, line.at);
  fmt::format_to(std::back_inserter(to), ",{},{},{},{}\n", line.party, line.client.value, csv::field_text(line.tensor),
                 hex_text(line.digest));
}

/// Line of client_accuracy.csv, and the evaluation to which it belongs.
struct client_line {
  const evaluation_record& at;
  const client_test& test;
};

void put(fmt::memory_buffer& to, const client_line& line) {
  const auto& [at, test] = line;
  fmt::format_to(std::back_inserter(to), "{},{},", at.task.value + 1, at.round.value + 1);
  put_seconds(to, at.at);
  const auto percent = [&](std::int64_t correct) {
    return 100.0 * static_cast<double>(correct) / static_cast<double>(test.test_rows);
  };
  fmt::format_to(std::back_inserter(to), ",{},{},{},{},{}\n", test.client.value, test.train_rows, test.test_rows,
                 percent(test.correct_before), percent(test.correct));
}

/// Name of a file to which lines are appended, and the member of line_lengths for its length.
struct line_file_name {
  const char* name;
  std::uint64_t line_lengths::*length;
};
constexpr std::array<line_file_name, 4> line_files{{{events_name, &line_lengths::events},
                                                    {digests_name, &line_lengths::digests},
                                                    {deliveries_name, &line_lengths::deliveries},
                                                    {clients_name, &line_lengths::clients}}};

/// Size of a regular file in bytes. Returns 0 for other files, because a link could refer to a file of another run.
std::uint64_t length_of(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(file, none)))
    return 0;
  const auto bytes = fs::file_size(file, none);
  return none ? 0 : bytes;
}

std::string_view view(const fmt::memory_buffer& text) { return {text.data(), text.size()}; }

} // namespace

std::string run_directory::model_file(task_id task) {
  return fmt::format("{}/task_{}.safetensors", models_name, task.value + 1);
}

std::string run_directory::values_file(std::int64_t round) { return fmt::format("values/round_{}.safetensors", round); }

bool run_directory::never_started(const fs::path& folder) {
  const auto names = names_below(folder);
  return names.contains(checkpoints_name) &&
         std::includes(unstarted_run_files().begin(), unstarted_run_files().end(), names.begin(), names.end());
}

expected<run_directory> run_directory::create(const fs::path& out, const std::string& default_name) {
  const fs::path first = out.empty() ? fs::path("runs") / default_name : out;
  // "runs/x/" means the folder x, not a file without a name in it
  const fs::path folder = first.has_filename() ? first : first.parent_path();
  if (auto error = make_parents(folder))
    return cannot_create(folder, error);
  for (std::int64_t number = 1;; ++number) {
    const auto path = number == 1 ? folder : fs::path(folder.string() + "-" + std::to_string(number));
    std::optional<expected<open_file>> own;
    const auto error = make_marked_folder(path, own);
    if (!error && own->has_value())
      return run_directory(path, std::move(**own));
    if (!error)
      return tl::unexpected{own->error()};
    if (error == std::errc::file_exists && !out.empty() && never_started(path))
      if (auto lock = locked(path); lock && never_started(path)) { // if a run were starting, it would hold the lock
        for (const auto& name : unstarted_run_files())
          if (name != checkpoints_name)
            fs::remove(path / name);
        return run_directory(path, std::move(*lock));
      }
    if (error != std::errc::file_exists)
      return cannot_create(path, error);
    if (!out.empty())
      return failed("", "--out '" + out.string() +
                            "' already exists, and a run never overwrites another; choose a new folder");
  }
}

expected<run_directory> run_directory::open(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none))
    return failed("", fmt::format("'{}' is not a folder; expected the folder of a run, as in mneme resume runs/NAME",
                                  path.string()));
  if (!fs::exists(path / "scenario.toml", none))
    return failed("",
                  fmt::format("'{}' has no scenario.toml: the run ended before it started, or this is not the folder "
                              "of a run; run the scenario again with mneme run (--out may name the same folder)",
                              path.string()));
  auto lock = locked(path);
  if (!lock)
    return tl::unexpected{lock.error()};
  run_directory opened(path, std::move(*lock));
  opened.has_begun_ = fs::is_regular_file(path / origin_name, none);
  return opened;
}

void run_directory::write_origin(const run_origin& from) {
  fs::create_directories(checkpoints());
  write(origin_name, json_text(from));
}

expected<run_origin> run_directory::origin() const { return parse_origin(checkpoints() / "run.json"); }

expected<std::string> run_directory::status() const { return status_in(path_ / "summary.json"); }

void run_directory::expect_in_place() const {
  const auto fail = [](const std::string& text) {
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory), text);
  };
  if (!is_same_folder(lock_.descriptor(), path_)) {
    const auto now = place_of(lock_.descriptor());
    fail("the folder of the run was " + (now.empty() ? "removed" : "moved to '" + now.string() + "'") +
         ": cannot write into '" + path_.string() + "'");
  }
  for (const char* name : {"scenario.toml", origin_name})
    if (std::error_code none; has_begun_ && !fs::is_regular_file(path_ / name, none))
      fail("'" + (path_ / name).string() + "' was moved or removed during the run");
}

fs::path run_directory::resumable_at() const {
  const auto now = is_same_folder(lock_.descriptor(), path_) ? path_ : place_of(lock_.descriptor());
  std::error_code none;
  const auto has = [&](const char* name) { return fs::is_regular_file(now / name, none); };
  return has("scenario.toml") && has(origin_name) ? now : fs::path();
}

line_lengths run_directory::sync_lines() {
  expect_in_place();
  const auto sync_and_size = [&](std::optional<line_file>& file, const char* name) {
    return file ? file->sync_and_size() : length_of(path_ / name);
  };
  return {.events = sync_and_size(events_, events_name),
          .digests = sync_and_size(digests_, digests_name),
          .deliveries = sync_and_size(deliveries_, deliveries_name),
          .clients = sync_and_size(clients_, clients_name)};
}

std::string run_directory::file_shorter_than(const line_lengths& lengths) const {
  for (const auto& file : line_files)
    if (length_of(path_ / file.name) < lengths.*file.length)
      return file.name;
  return {};
}

void run_directory::truncate_to_checkpoint(std::span<const evaluation_record> evaluations,
                                           const accuracy_matrix& matrix, std::int64_t tasks,
                                           const std::vector<std::string>& names, const line_lengths& lengths) {
  for (const auto& folder : {path_, path_ / models_name})
    if (fs::is_directory(folder))
      for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".part")
          remove_file(entry.path());
  expect_in_place();
  for (const char* name : {"summary.json", "model.safetensors", "accuracy.svg", "timeline.jsonl", "metrics.jsonl",
                           "accuracy_matrix.csv", "accuracy_per_class.csv"})
    remove_file(path_ / name);
  for (auto task = std::ssize(matrix.rows) + 1; task <= tasks; ++task)
    remove_file(path_ / model_file({static_cast<std::uint32_t>(task - 1)}));
  std::string lines;
  for (const auto& evaluation : evaluations)
    lines += json_text(evaluation) + "\n";
  if (!lines.empty())
    write("metrics.jsonl", lines);
  if (!matrix.rows.empty())
    write_matrix(matrix, tasks);
  write_classes(evaluations, names);
  if (const auto shorter = file_shorter_than(lengths); !shorter.empty())
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                            "cannot shorten '" + (path_ / shorter).string() + "'");
  for (const auto& file : line_files)
    if (lengths.*file.length == 0)
      remove_file(path_ / file.name);
    else
      fs::resize_file(path_ / file.name, lengths.*file.length);
}

void run_directory::write(const std::string& name, std::string_view content) {
  expect_in_place();
  if (const auto folder = (path_ / name).parent_path(); folder != path_)
    fs::create_directories(folder);
  write_atomically(path_ / name, content);
  if (std::error_code none; name == "scenario.toml")
    has_begun_ = fs::is_regular_file(path_ / origin_name, none);
}

void run_directory::add(const evaluation_record& line) {
  expect_in_place();
  if (!metrics_)
    metrics_.emplace(path_ / "metrics.jsonl");
  metrics_->append(json_text(line) + "\n");
}

template <class Line>
void run_directory::add_lines(std::optional<line_file>& file, const char* name, const char* header,
                              std::span<const Line> lines) {
  expect_in_place();
  fmt::memory_buffer text;
  if (!file) {
    file.emplace(path_ / name);
    text.append(std::string_view(length_of(path_ / name) > 0 ? "" : header));
  }
  for (const auto& line : lines)
    put(text, line);
  file->append(view(text));
}

void run_directory::add(std::span<const event_record> lines) {
  add_lines(events_, events_name, "virtual_s,actor,event,client,task,round,bytes\n", lines);
}

void run_directory::add(std::span<const step_digests> lines) {
  add_lines(digests_, digests_name, "round,virtual_s,deliveries,model,run\n", lines);
}

void run_directory::add(std::span<const tensor_digest> lines) {
  add_lines(deliveries_, deliveries_name, "round,virtual_s,party,client,tensor,digest\n", lines);
}

void run_directory::add_clients(const evaluation_record& line) {
  std::vector<client_line> lines;
  for (const auto& test : line.clients)
    if (test.test_rows > 0)
      lines.push_back({line, test});
  add_lines(clients_, clients_name, "task,round,virtual_s,client,train_rows,test_rows,accuracy_before,accuracy\n",
            std::span<const client_line>(lines));
}

void run_directory::write_matrix(const accuracy_matrix& matrix, std::int64_t tasks) {
  std::string text = "after_task";
  for (std::int64_t t = 1; t <= tasks; ++t)
    text += fmt::format(",task_{}", t);
  text += '\n';
  for (std::size_t t = 0; t < matrix.rows.size(); ++t) {
    text += std::to_string(t + 1);
    for (double accuracy : matrix.rows[t])
      text += fmt::format(",{}", accuracy); // writes the shortest text that parses to the same double
    for (auto s = std::ssize(matrix.rows[t]); s < tasks; ++s)
      text += ',';
    text += '\n';
  }
  write("accuracy_matrix.csv", text);
}

void run_directory::write_classes(std::span<const evaluation_record> evaluations,
                                  const std::vector<std::string>& names) {
  fmt::memory_buffer text;
  for (const auto& evaluation : evaluations)
    for (std::size_t label = 0; label < evaluation.per_class.size(); ++label) {
      const auto& [rows, correct] = evaluation.per_class[label];
      if (rows > 0) // classes of later tasks have no rows yet
        fmt::format_to(std::back_inserter(text), "{},{},{},{},{}\n", evaluation.task.value + 1, label,
                       label < names.size() ? csv::field_text(names[label]) : "", rows,
                       100.0 * static_cast<double>(correct) / static_cast<double>(rows));
    }
  if (text.size() > 0)
    write("accuracy_per_class.csv", "after_task,class,name,rows,accuracy\n" + fmt::to_string(text));
}

void run_directory::write_client_classes(const partition& who, std::int64_t clients, const task_stream& tasks) {
  fmt::memory_buffer text;
  text.append(std::string_view("task,client,class,name,rows\n"));
  for (std::uint32_t t = 0; t < tasks.tasks.size(); ++t)
    for (std::uint32_t c = 0; c < clients; ++c) {
      const auto rows = rows_by_class(who, tasks, {c}, {t});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto label = static_cast<std::size_t>(tasks.tasks[t].classes.low) + i;
        if (rows[i] > 0)
          fmt::format_to(std::back_inserter(text), "{},{},{},{},{}\n", t + 1, c, label,
                         label < tasks.class_names.size() ? csv::field_text(tasks.class_names[label]) : "", rows[i]);
      }
    }
  write(client_classes_name, view(text));
}

void run_directory::write_partition(const partition& who, std::int64_t clients, std::int64_t tasks,
                                    const dataset& train) {
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  atomic_file file(path_ / "partition.csv");
  fmt::memory_buffer text;
  text.append(std::string_view("row,client,task\n"));
  for (std::uint32_t t = 0; t < tasks; ++t)
    for (std::uint32_t c = 0; c < clients; ++c) {
      for (auto row : who.rows(client_id{c}, task_id{t}))
        fmt::format_to(std::back_inserter(text), "{},{},{}\n", train.file_row(row), c, t + 1);
      if (text.size() >= block_bytes) {
        file.write(view(text));
        text.clear();
      }
    }
  file.write(view(text));
  file.commit();
}

} // namespace mneme

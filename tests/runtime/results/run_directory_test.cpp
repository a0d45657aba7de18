#include "runtime/data/partition.hpp"
#include "runtime/results/run_directory.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
#include <sys/mount.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
using namespace mneme;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// Makes an empty folder the working directory during its lifetime.
class elsewhere {
public:
  elsewhere() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~elsewhere() { fs::current_path(before_); }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }

private:
  test::scratch_folder folder_;
  fs::path before_;
};

run_directory made_at(const fs::path& out) {
  auto made = run_directory::create(out, "");
  REQUIRE(made);
  return std::move(*made);
}

/// Mounts a file system of `size` at `path` during its lifetime.
class small_disk {
public:
  small_disk(fs::path path, const char* size)
      : path_(std::move(path)), mounted_(::mount("tmpfs", path_.c_str(), "tmpfs", 0, size) == 0) {}
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;
  ~small_disk() {
    if (mounted_)
      ::umount2(path_.c_str(), MNT_DETACH);
  }
  [[nodiscard]] bool mounted() const noexcept { return mounted_; }

private:
  fs::path path_;
  bool mounted_;
};

/// Client c holds rows 10c + t and 10c + t + 100 of a file with 100 rows.
struct two_rows_each final : partition {
  std::int64_t size(client_id, task_id) const override { return 2; }
  std::vector<std::int64_t> rows(client_id c, task_id t) const override {
    return {10 * c.value + t.value, 10 * c.value + t.value + 100};
  }
};

const std::vector<event_record> two_events{
    {.at = virtual_time{3661s + 5ns}, .actor = "client", .event = "upload", .client = client_id{0}, .bytes = 40},
    {.at = virtual_time{3662s}, .actor = "server", .event = "close", .task = {1}, .round = {9}}};

} // namespace

TEST_CASE("a run.json or summary.json that is a pipe is refused without blocking") {
  const test::scratch_folder folder;
  auto made = run_directory::create(folder.path() / "run", "");
  REQUIRE(made);
  made->write_origin({.scenario = "a", .trace = false});
  CHECK(made->origin()->scenario == "a");
  for (const auto* const name : {"checkpoint/run.json", "summary.json"}) {
    std::filesystem::remove(folder.path() / "run" / name);
    REQUIRE(::mkfifo((folder.path() / "run" / name).c_str(), 0600) == 0);
  }
  CHECK_FALSE(made->origin());
  const auto status = made->status();
  REQUIRE_FALSE(status);
  CHECK(status.error().front().text.starts_with("is a named pipe; expected an ordinary file"));
}

TEST_CASE("runs of one name get different folders") {
  const elsewhere here;
  for (const char* expected :
       {"runs/quick-fedavg-s1-01234567", "runs/quick-fedavg-s1-01234567-2", "runs/quick-fedavg-s1-01234567-3"}) {
    const auto made = run_directory::create("", "quick-fedavg-s1-01234567");
    REQUIRE(made);
    CHECK(made->path() == expected);
    CHECK(fs::is_directory(expected));
  }
}

TEST_CASE("concurrent creations never share a folder") {
  const elsewhere here;
  std::vector<fs::path> paths(24);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < paths.size(); i += 4)
        if (auto made = run_directory::create("", "same"))
          paths[i] = made->path();
    });
  for (auto& thread : threads)
    thread.join();
  const std::set<fs::path> distinct(paths.begin(), paths.end());
  CHECK(distinct.size() == paths.size());
  CHECK(distinct.contains("runs/same-24"));
}

TEST_CASE("a run's folder appears with its mark, and no temporary folder remains") {
  const test::scratch_folder folder;
  const auto out = folder.path() / "run";
  {
    const auto made = run_directory::create(out, "");
    REQUIRE(made);
    CHECK(run_directory::never_started(out));    // a process killed at this point does not block the next run
    CHECK_FALSE(run_directory::create(out, "")); // the folder is locked during the run's lifetime
  }
  CHECK(run_directory::create(out, ""));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("an existing --out is refused, and missing parents are created") {
  const test::scratch_folder folder;
  const auto out = folder.path() / "a" / "b" / "c";
  CHECK(made_at(out).path() == out);
  test::write_file(out / "scenario.toml", "");
  for (const auto& again : {out, out / ""}) {
    const auto refused = run_directory::create(again, "name");
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().size() == 1);
    CHECK_THAT(refused.error()[0].text, ContainsSubstring("already exists") && ContainsSubstring(out.string()));
  }
  test::write_file(folder.path() / "file", "");
  CHECK_FALSE(run_directory::create(folder.path() / "file", "name"));
}

TEST_CASE("the folder of a run killed before it began is reused, and no other folder") {
  const test::scratch_folder folder;
  const auto out = folder.path() / "run";
  const auto refused = [&] { return !run_directory::create(out, "name").has_value(); };
  {
    auto begun = made_at(out);
    begun.write_origin({.scenario = "a"});
    CHECK(refused()); // its lock is held
  }
  test::write_file(out / "partition.csv", "row,client,task\n");
  test::write_file(out / "scenario.toml.part", "seed");
  {
    const auto again = made_at(out);
    CHECK(again.path() == out);
    CHECK_FALSE(fs::exists(out / "partition.csv"));
  }
  test::write_file(out / "notes.txt", "mine");
  CHECK(refused());
  fs::remove_all(out);
  fs::create_directory(out);
  CHECK(refused());
}

TEST_CASE("a run whose folder is renamed or removed cannot write into another one") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  run.add(evaluation_record{});
  fs::rename(folder.path() / "run", folder.path() / "moved");
  const auto moved = ContainsSubstring("was moved to '" + (folder.path() / "moved").string() + "'");
  CHECK_THROWS_WITH(run.write("summary.json", "{}"), moved);
  fs::create_directory(folder.path() / "run");
  CHECK_THROWS_WITH(run.write("summary.json", "{}"), moved);
  CHECK(fs::is_empty(folder.path() / "run"));
  fs::remove_all(folder.path() / "moved");
  CHECK_THROWS_WITH(run.add(evaluation_record{}), ContainsSubstring("was removed"));
}

TEST_CASE("a run with missing files reports them and the folder to resume from") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  run.write_origin({.scenario = "x"});
  run.write("scenario.toml", "seed = 1");
  CHECK(run.resumable_at() == folder.path() / "run");
  fs::rename(folder.path() / "run", folder.path() / "moved");
  CHECK(run.resumable_at() == folder.path() / "moved");
  fs::rename(folder.path() / "moved", folder.path() / "run");
  for (const std::string name : {"scenario.toml", "checkpoint/run.json"}) {
    fs::rename(folder.path() / "run" / name, folder.path() / "away");
    CHECK_THROWS_WITH(run.add(evaluation_record{}), ContainsSubstring(name + "' was moved or removed"));
    CHECK_THROWS_WITH(run.sync_lines(), ContainsSubstring(name + "' was moved or removed"));
    CHECK(run.resumable_at().empty());
    fs::rename(folder.path() / "away", folder.path() / "run" / name);
    CHECK_NOTHROW(run.write("summary.json", "{}"));
  }
}

TEST_CASE("cut_back() does not follow a link in place of events.csv") {
  const test::scratch_folder folder;
  const auto other = folder.path() / "other";
  test::write_file(other, "precious");
  auto run = made_at(folder.path() / "run");
  fs::create_symlink(other, run.path() / "events.csv");
  CHECK(run.file_shorter_than({.events = 4}) == "events.csv");
  CHECK_THROWS_WITH(run.truncate_to_checkpoint({}, {}, 1, {}, {.events = 4}), ContainsSubstring("events.csv"));
  run.truncate_to_checkpoint({}, {}, 1, {}, {});
  CHECK_FALSE(fs::is_symlink(run.path() / "events.csv"));
  CHECK(test::content_of(other) == "precious");
}

TEST_CASE("a folder that cannot be written is reported as an error, not as an exception") {
  const test::scratch_folder folder;
  test::write_file(folder.path() / "file", "");
  for (const auto& out : {folder.path() / "file" / "run", fs::path("/proc/mneme/run"), fs::path("/proc/mneme")}) {
    const auto refused = run_directory::create(out, "name");
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().at(0).text,
               ContainsSubstring("cannot create") && ContainsSubstring(out.string()) && ContainsSubstring("--out"));
  }
}

TEST_CASE("evaluations are appended to metrics.jsonl at once") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  const evaluation_record first{.accuracy = 50.0, .accuracy_per_task = {50.0}};
  const evaluation_record second{.round = {1}, .accuracy = 60.0, .accuracy_per_task = {60.0}};
  run.add(first);
  CHECK(test::content_of(run.path() / "metrics.jsonl") == json_text(first) + "\n");
  run.add(second);
  CHECK(test::content_of(run.path() / "metrics.jsonl") == json_text(first) + "\n" + json_text(second) + "\n");
}

TEST_CASE("events.csv has nanoseconds, clients from 0, tasks and rounds from 1") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  run.add(std::span(two_events).first(1));
  run.add(std::span(two_events).last(1));
  CHECK(test::content_of(run.path() / "events.csv") == "virtual_s,actor,event,client,task,round,bytes\n"
                                                       "3661.000000005,client,upload,0,1,1,40\n"
                                                       "3662.000000000,server,close,,2,10,0\n");
}

TEST_CASE("the accuracy matrix has a column per task of the run and a row per finished task") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  run.write_matrix({.rows = {{100.0 / 3.0}, {12.5, 100.0}}, .pooled = {0.0, 0.0}}, 3);
  CHECK(test::content_of(run.path() / "accuracy_matrix.csv") == "after_task,task_1,task_2,task_3\n"
                                                                "1,33.333333333333336,,\n"
                                                                "2,12.5,100,\n");
}

TEST_CASE("partition.csv names rows of the file, for any transform") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  dataset train;
  train.labels.resize(100);
  run.write_partition(two_rows_each{}, 2, 2, train);
  CHECK(test::content_of(run.path() / "partition.csv") ==
        "row,client,task\n0,0,1\n0,0,1\n10,1,1\n10,1,1\n1,0,2\n1,0,2\n11,1,2\n11,1,2\n");
}

TEST_CASE("a file that cannot be written is named, and earlier files stay intact") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  run.write("scenario.toml", "seed = 1\n");
  run.add(evaluation_record{});
  for (const char* name : {"events.csv", "summary.json.part"})
    fs::create_symlink("/dev/full", run.path() / name);
  CHECK_THROWS_WITH(run.add(two_events), ContainsSubstring("events.csv', which is a link"));
  CHECK_THROWS_WITH(run.write("summary.json", "{}"), ContainsSubstring("summary.json"));
  CHECK_FALSE(fs::exists(run.path() / "summary.json"));
  CHECK(test::content_of(run.path() / "scenario.toml") == "seed = 1\n");
  CHECK(test::content_of(run.path() / "metrics.jsonl") == json_text(evaluation_record{}) + "\n");
}

TEST_CASE("a full disk leaves intact files") {
  const test::scratch_folder folder;
  const small_disk disk(folder.path(), "size=64k");
  if (!disk.mounted())
    SKIP("this machine does not let the test mount a small disk");
  auto run = made_at(folder.path() / "run");
  run.write("scenario.toml", "seed = 1\n");
  CHECK_THROWS_AS(run.write("model.safetensors", std::string(100'000, 'x')), std::system_error);
  CHECK_FALSE(fs::exists(run.path() / "model.safetensors"));
  CHECK_FALSE(fs::exists(run.path() / "model.safetensors.part"));
  const evaluation_record line{.accuracy_per_task = std::vector<double>(100, 100.0 / 3.0)};
  std::size_t lines = 0;
  auto fill = [&] {
    for (;; ++lines)
      run.add(line);
  };
  CHECK_THROWS_WITH(fill(), ContainsSubstring("metrics.jsonl"));
  CHECK(test::content_of(run.path() / "metrics.jsonl").size() == lines * (json_text(line).size() + 1));
  CHECK(test::content_of(run.path() / "scenario.toml") == "seed = 1\n");
}

TEST_CASE("a run directory has one owner at a time") {
  const test::scratch_folder folder;
  {
    const auto first = made_at(folder.path() / "run");
    test::write_file(folder.path() / "run" / "scenario.toml", "");
    const auto second = run_directory::open(folder.path() / "run");
    REQUIRE_FALSE(second);
    CHECK_THAT(second.error().at(0).text, ContainsSubstring("another process"));
  }
  CHECK(run_directory::open(folder.path() / "run"));
}

TEST_CASE("a folder without a scenario, and a file, are no run directories") {
  const test::scratch_folder folder;
  test::write_file(folder.path() / "file", "");
  const auto complaint = [](const fs::path& path) { return run_directory::open(path).error().at(0).text; };
  CHECK_THAT(complaint(folder.path()), ContainsSubstring("no scenario.toml"));
  CHECK_THAT(complaint(folder.path() / "file"), ContainsSubstring("is not a folder"));
  CHECK_THAT(complaint(folder.path() / "nothing"), ContainsSubstring("is not a folder"));
}

TEST_CASE("a run directory records its origin and its end") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  CHECK_FALSE(run.origin());
  run.write_origin({.scenario = "quick \"start\"", .scenario_digest = "0f", .trace = true});
  const auto origin = run.origin();
  REQUIRE(origin);
  CHECK(origin->scenario == "quick \"start\"");
  CHECK(origin->scenario_digest == "0f");
  CHECK(origin->trace);
  CHECK(run.status()->empty());
  run.write("summary.json", json_text(run_summary{.status = "interrupted"}));
  CHECK(*run.status() == "interrupted");
  run.write("summary.json", "{\"status\"");
  REQUIRE_FALSE(run.status());
  CHECK(run.status().error().front().text.starts_with("is damaged: expected one JSON object with a status"));
  run.write("checkpoint/run.json", "[1]");
  CHECK_FALSE(run.origin());
}

TEST_CASE("cut_back() removes later lines, and writing continues from there") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  const evaluation_record first{.accuracy_per_task = {50.0}, .per_class = {{8, 2}}},
      second{.round = {1}, .accuracy_per_task = {60.0}};
  const accuracy_matrix matrix{.rows = {{50.0}}, .pooled = {50.0}};
  run.add(first);
  run.write_matrix(matrix, 2);
  run.add(std::span(two_events).first(1));
  const std::vector<step_digests> steps{{.round = 1, .deliveries = 2, .model = {1, 2}, .run = {3, 4}},
                                        {.round = 2, .deliveries = 3}};
  const std::vector<tensor_digest> uploaded{{.at = virtual_time{std::chrono::milliseconds(1500)},
                                             .round = 2,
                                             .party = "server",
                                             .client = {7},
                                             .tensor = "weights",
                                             .digest = {5, 6}}};
  run.add(std::span(steps).first(1));
  const auto events = run.sync_lines();
  run.add(std::span(steps).last(1));
  run.add(std::span(uploaded));
  CHECK(test::content_of(run.path() / "deliveries.csv") ==
        "round,virtual_s,party,client,tensor,digest\n"
        "2,1.500000000,server,7,weights,00000000000000050000000000000006\n");
  const auto metrics_then = test::content_of(run.path() / "metrics.jsonl");
  const auto matrix_then = test::content_of(run.path() / "accuracy_matrix.csv");
  run.add(second);
  run.add(two_events);
  run.write_matrix({.rows = {{50.0}, {1.0, 2.0}}, .pooled = {50.0, 1.0}}, 2);
  run.write("summary.json", "{}");
  run.write(run_directory::model_file({0}), "first");
  run.write(run_directory::model_file({1}), "second");
  test::write_file(run.path() / "model.safetensors.part", "torn");
  test::write_file(run.path() / "models" / "task_2.safetensors.part", "torn");
  CHECK(run.file_shorter_than(events).empty());
  CHECK(run.file_shorter_than({.events = 10'000}) == "events.csv");

  const auto path = run.path();
  { const auto closed = std::move(run); }
  test::write_file(path / "scenario.toml", "seed = 1\n");
  auto again = run_directory::open(path);
  REQUIRE(again);
  again->truncate_to_checkpoint(std::vector{first}, matrix, 2, {"cat"}, events);
  CHECK(test::content_of(path / "metrics.jsonl") == metrics_then);
  CHECK(test::content_of(path / "accuracy_matrix.csv") == matrix_then);
  CHECK(fs::file_size(path / "events.csv") == events.events);
  CHECK(test::content_of(path / "digests.csv") == "round,virtual_s,deliveries,model,run\n"
                                                  "1,0.000000000,2,00000000000000010000000000000002,"
                                                  "00000000000000030000000000000004\n");
  CHECK_FALSE(fs::exists(path / "deliveries.csv"));
  CHECK_FALSE(fs::exists(path / "summary.json"));
  CHECK_FALSE(fs::exists(path / "model.safetensors.part"));
  CHECK(test::content_of(path / "models" / "task_1.safetensors") == "first");
  CHECK_FALSE(fs::exists(path / "models" / "task_2.safetensors"));
  CHECK_FALSE(fs::exists(path / "models" / "task_2.safetensors.part"));
  CHECK(test::content_of(path / "accuracy_per_class.csv") == "after_task,class,name,rows,accuracy\n1,0,cat,8,25\n");
  CHECK(test::content_of(path / "scenario.toml") == "seed = 1\n");
  again->add(second);
  again->add(std::span(two_events).last(1));
  CHECK(test::content_of(path / "metrics.jsonl") == metrics_then + json_text(second) + "\n");
  CHECK(test::content_of(path / "events.csv") == "virtual_s,actor,event,client,task,round,bytes\n"
                                                 "3661.000000005,client,upload,0,1,1,40\n"
                                                 "3662.000000000,server,close,,2,10,0\n");
}

TEST_CASE("accuracies of seen classes are listed per task") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  const std::vector<evaluation_record> evaluations{{.per_class = {{4, 3}, {3, 1}, {0, 0}}},
                                                   {.round = {1}}, // during a task
                                                   {.task = {1}, .round = {2}, .per_class = {{4, 0}, {3, 3}, {2, 1}}}};
  run.write_classes(evaluations, {"T-shirt", "a, \"b\""});
  CHECK(test::content_of(run.path() / "accuracy_per_class.csv") == "after_task,class,name,rows,accuracy\n"
                                                                   "1,0,T-shirt,4,75\n"
                                                                   "1,1,\"a, \"\"b\"\"\",3,33.333333333333336\n"
                                                                   "2,0,T-shirt,4,0\n"
                                                                   "2,1,\"a, \"\"b\"\"\",3,100\n"
                                                                   "2,2,,2,50\n");
}

TEST_CASE("a run restarted from the beginning removes the files of the previous attempt") {
  const test::scratch_folder folder;
  auto run = made_at(folder.path() / "run");
  run.add(evaluation_record{});
  run.add(two_events);
  run.write_matrix({.rows = {{50.0}}, .pooled = {50.0}}, 1);
  run.truncate_to_checkpoint({}, {}, 1, {}, {});
  fs::remove(folder.path() / "run" / "checkpoint"); // fails unless it is empty
  CHECK(fs::is_empty(folder.path() / "run"));
}

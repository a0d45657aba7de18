#include "runtime/data/partition.hpp"
#include "tests/support/small_data.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using numbers = std::vector<std::int64_t>;

namespace {

/// File that exists during the lifetime of the object.
class csv_file {
public:
  explicit csv_file(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  ~csv_file() { std::filesystem::remove(path_); }
  csv_file(const csv_file&) = delete;
  csv_file& operator=(const csv_file&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_ = [] {
    std::string name = (std::filesystem::temp_directory_path() / "mneme-rows-XXXXXX").string();
    close(mkstemp(name.data()));
    return name;
  }();
};

/// Two tasks of two classes, ten rows: classes 0 1 2 3 0 1 2 3 0 1; three clients.
scenario from_file(const csv_file& file) {
  scenario from;
  from.tasks.count = 2;
  from.clients.count = 3;
  from.partition.kind = partition_kind::file;
  from.partition.file = file.path();
  from.key_places["partition.file"] = "a.toml:4:2";
  return from;
}

expected<std::shared_ptr<const partition>> split_of(const csv_file& file) {
  const auto from = from_file(file);
  return make_partition(from,
                        std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(4, 10)).value()));
}

} // namespace

TEST_CASE("a file gives rows to clients, and rows that it omits belong to no client", "[partition]") {
  const csv_file file("row,client\n9,0\n0,0\n2,1\n4,2\n6,0\n");
  const auto split = split_of(file).value();
  CHECK(split->rows({0}, {0}) == numbers{0, 9}); // ascending, whatever the order of lines
  CHECK(split->rows({0}, {1}) == numbers{6});
  CHECK(split->rows({1}, {0}).empty());
  CHECK(split->rows({1}, {1}) == numbers{2});
  CHECK(split->size({2}, {0}) == 1);
}

TEST_CASE("a file may have a task column, other columns, quotes, blank lines and any line endings", "[partition]") {
  const csv_file file("\xEF\xBB\xBFnote,\"client\" , task,row\r\n\"a, b\",2,1,4\r\n\r\n,\"0\",2, 7 \r\nlast,1,2,3");
  const auto split = split_of(file).value();
  CHECK(split->rows({2}, {0}) == numbers{4});
  CHECK(split->rows({0}, {1}) == numbers{7});
  CHECK(split->rows({1}, {1}) == numbers{3});
}

TEST_CASE("errors of a partition file have line numbers", "[partition]") {
  struct wrong {
    const char *text, *line, *says;
  };
  const auto [text, line, says] =
      GENERATE(wrong{"\n", ":1: ", "names no column 'client' but nothing; expected a first line such as client,row"},
               wrong{"client,line\n0,1\n", ":1: ", "names no column 'row' but 'client', 'line'"},
               wrong{"client,rows\n0,1\n", ":1: ", "names a column 'rows', which is not used; did you mean 'row'?"},
               wrong{"client,row,Task\n0,1,1\n", ":1: ", "a column 'Task', which is not used; did you mean 'task'?"},
               wrong{"client,row,task_id\n0,1,1\n", ":1: ", "a column 'task_id', which is not used; did you mean"},
               wrong{"client,row,Row\n0,1,1\n", ":1: ", "a column 'Row', which is not used; did you mean 'row'?"},
               wrong{"client,row\n0,\"1\"x\n", ":2: ", "text follows the closing quote of field 2"},
               wrong{"client,row,row\n0,1,1\n", ":1: ", "names the column 'row' twice"},
               wrong{"client,row\n0,1\n3,2\n", ":3: ", "client 3 does not exist; expected 0..2 (clients.count = 3)"},
               wrong{"client,row\n-1,2\n", ":2: ", "client -1 does not exist"},
               wrong{"client,row\n0,10\n", ":2: ", "row 10 does not exist among the 10 training rows"},
               wrong{"client,row\n0,-1\n", ":2: ", "row -1 does not exist"},
               wrong{"client,row\n0,1\n\n0,one\n", ":4: ", "found 'one' as row; expected an integer"},
               wrong{"client,row\n0,1.5\n", ":2: ", "found '1.5' as row"},
               wrong{"client,row,note\n0,,a\n", ":2: ", "found '' as row"},
               wrong{"client,row\n0,1,2\n", ":2: ", "the line has 3 of 2 fields"},
               wrong{"client,row\n0\n", ":2: ", "the line has 1 of 2 fields"},
               wrong{"client,row\n0,99999999999999999999\n", ":2: ", "found '99999999999999999999' as row"},
               wrong{"client,row\n0,1\n2,1\n",
                     ":3: ", "row 1 is given to client 2 and, in an earlier line, to client 0 (task 1)"},
               wrong{"client,row,task\n0,1,0\n", ":2: ", "task 0 does not exist; expected 1..2"},
               wrong{"client,row,task\n0,1,3\n", ":2: ", "task 3 does not exist; expected 1..2"},
               wrong{"client,row,task\n0,1,2\n", ":2: ", "row 1 is not a row of task 2"});
  const csv_file file(text);
  const auto error_text = first_finding(split_of(file));
  INFO(error_text);
  CHECK(error_text.starts_with(file.path().string() + line));
  CHECK_THAT(error_text, ContainsSubstring(says));
}

TEST_CASE("all wrong lines of a partition file are reported, up to twenty", "[partition]") {
  std::string text = "client,row\n0,1\n0,77\n9,2\n";
  const csv_file two(text);
  CHECK(split_of(two).error().size() == 2);
  for (int i = 0; i < 100; ++i)
    text += "0,88\n";
  const csv_file many(text);
  CHECK(split_of(many).error().size() == 20);
}

TEST_CASE("a missing partition file and a missing file name are reported", "[partition]") {
  const csv_file file("client,row\n");
  auto from = from_file(file);
  const auto tasks = std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(4, 10)).value());
  from.partition.file = "/nowhere/rows.csv";
  CHECK_THAT(first_finding(make_partition(from, tasks)),
             ContainsSubstring("a.toml:4:2: cannot read '/nowhere/rows.csv' (cannot be read: No such file"));
  from.partition.file.clear();
  CHECK_THAT(first_finding(make_partition(from, tasks)), ContainsSubstring("needs a file and found \"\""));
}

TEST_CASE("a partition file may have other column names and semicolons", "[partition]") {
  const csv_file file("client;row;mask;raw;client_id;\n1;4;x;y;\"site \"\"A\"\"\";\n");
  const auto split = split_of(file).value();
  CHECK(split->rows({1}, {0}) == numbers{4});
}

TEST_CASE("a partition file without rows is refused", "[partition]") {
  const csv_file file("client,row\n");
  CHECK_THAT(first_finding(split_of(file)),
             ContainsSubstring("assigns no row to a client; expected a line for each row"));
  const csv_file empty("");
  CHECK_THAT(first_finding(split_of(empty)),
             ContainsSubstring("a.toml:4:2: cannot read") && ContainsSubstring("the file is empty"));
}

TEST_CASE("rows selected for the test belong to no client and are counted", "[partition]") {
  auto data = hand_made_data(4, 8);
  data.train.file_rows = {0, 1, 2, 3, 5, 6, 7, 9};
  data.drawn_rows = {4, 8};
  const csv_file file("client,row\n0,0\n1,1\n2,2\n0,3\n1,4\n2,5\n0,8\n");
  auto from = from_file(file);
  from.data.test_share = 0.2;
  const auto tasks = std::make_shared<const task_stream>(make_task_stream(from, data).value());
  const auto split = make_partition(from, tasks).value();
  CHECK(split->drawn_rows() == 2);
  CHECK(split->rows({1}, {0}) == numbers{1});
  CHECK(split->rows({2}, {0}) == numbers{4}); // row 5 of the file, class 0
  const csv_file drawn("client,row\n1,4\n2,8\n");
  from.partition.file = drawn.path();
  CHECK_THAT(first_finding(make_partition(from, tasks)),
             ContainsSubstring("assigns only the 2 rows that data.test_share selects as test rows"));
  const csv_file beyond("client,row\n1,1\n2,10\n");
  from.partition.file = beyond.path();
  CHECK_THAT(first_finding(make_partition(from, tasks)), ContainsSubstring("row 10 does not exist"));
}

TEST_CASE("without a task column, a client holds its rows of a permuted run in every task", "[partition]") {
  const csv_file file("client,row\n0,1\n2,3\n");
  auto from = from_file(file);
  from.tasks.kind = task_kind::domain_incremental;
  from.tasks.transform = task_transform::permute;
  const auto tasks = std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(4, 10)).value());
  const auto split = make_partition(from, tasks).value();
  CHECK(split->rows({2}, {0}) == numbers{3});
  CHECK(split->rows({2}, {1}) == numbers{13});
  const csv_file tasked("client,row,task\n0,1,1\n2,1,2\n");
  from.partition.file = tasked.path();
  CHECK(make_partition(from, tasks).value()->rows({2}, {1}) == numbers{11});
  const csv_file twice("client,row\n0,1\n2,1\n");
  from.partition.file = twice.path();
  CHECK(make_partition(from, tasks).error().size() == 1); // one diagnostic per line, not per task
}

TEST_CASE("rows are named by their numbers in the original file", "[partition]") {
  auto data = hand_made_data(4, 8);
  data.train.file_rows = {0, 1, 2, 3, 14, 15, 26, 27};
  const csv_file file("client,row\n1,14\n1,27\n");
  auto from = from_file(file);
  from.data.train_per_class = 2;
  const auto tasks = std::make_shared<const task_stream>(make_task_stream(from, data).value());
  const auto split = make_partition(from, tasks).value();
  CHECK(split->rows({1}, {0}) == numbers{4});
  CHECK(split->rows({1}, {1}) == numbers{7});
  const csv_file cut("client,row\n1,4\n");
  from.partition.file = cut.path();
  CHECK_THAT(first_finding(make_partition(from, tasks)), ContainsSubstring("row 4 does not exist"));
}

TEST_CASE("a limit of rows per class that drops no row leaves row numbers unchanged", "[partition]") {
  const csv_file file("client,row\n1,1\n");
  auto from = from_file(file);
  from.data.train_per_class = 2;
  const auto tasks = std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(4, 8)).value());
  CHECK(make_partition(from, tasks).value()->rows({1}, {0}) == numbers{1});
}

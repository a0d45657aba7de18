#include "runtime/population/capacity_table.hpp"
#include "runtime/population/client_table.hpp"
#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Errors of a file with this text, with locations relative to the folder.
std::string errors_of(const std::string& text, client_table_format form) {
  const scratch_folder folder;
  form.file = folder.path() / "t.csv";
  form.clients = 3;
  write_file(form.file, text);
  std::string errors;
  for (const auto& problem : read_client_table(form, [](const client_line&) { return std::string{}; }))
    errors += problem.where.substr(problem.where.find("t.csv")) + ": " + problem.text + "\n";
  return errors;
}

const client_table_format spans{.columns = {"from", "to"}, .optional = {"period"}};
const client_table_format capacities{.optional = {"profile", "rows_per_second"}};

} // namespace

TEST_CASE("unknown columns of a client table are refused", "[client_table]") {
  CHECK(errors_of("client,from,to\n0,1,2\n", spans).empty());
  CHECK(errors_of("period;client;from;to\r\n;0;1;\"2\"\r\n\r\n", spans).empty());
  CHECK(errors_of("client,row_per_second\n0,1\n", capacities) ==
        "t.csv:1: the header names an unknown column 'row_per_second'; did you mean 'rows_per_second'?\n");
  CHECK(errors_of("client,from,to,note\n0,1,2,x\n", spans) ==
        "t.csv:1: the header names an unknown column 'note'; expected client, from, to, period\n");
  CHECK(errors_of("client,from,to,Period\n0,1,2,3\n", spans) ==
        "t.csv:1: the header names an unknown column 'Period'; did you mean 'period'?\n");
  CHECK(errors_of(",client,from,to\n0,0,1,2\n", spans) ==
        "t.csv:1: the header has a column without a name, which is not used; remove it (pandas: index=False)\n");
  CHECK(errors_of("client,from,to,from\n0,1,2,1\n", spans) ==
        "t.csv:1: the header names the column 'from' twice; names must differ\n");
}

TEST_CASE("missing columns of a client table are named", "[client_table]") {
  CHECK(errors_of("client,From\n0,1\n", spans) ==
        "t.csv:1: the header names no column 'from'; expected a first line such as client,from,to\n"
        "t.csv:1: the header names no column 'to'; expected a first line such as client,from,to\n"
        "t.csv:1: the header names an unknown column 'From'; did you mean 'from'?\n");
  CHECK(errors_of("client\n0\n", capacities) ==
        "t.csv:1: the header names no column but client; expected any of profile, rows_per_second, too\n");
  CHECK(errors_of("profile\n0\n", capacities) ==
        "t.csv:1: the header names no column 'client'; expected a first line such as "
        "client,profile,rows_per_second\n");
  CHECK_THAT(errors_of("client,from,to\n0,\"1,2\n", spans), ContainsSubstring("t.csv:2: a quote that opens on line 2"));
}

TEST_CASE("a table of clients that cannot be read is reported at its key", "[client_table]") {
  const scratch_folder folder;
  auto form = spans;
  form.where = "a.toml:3:1";
  form.file = folder.path();
  const auto problems = read_client_table(form, [](const client_line&) { return std::string{}; });
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().where == "a.toml:3:1");
  CHECK_THAT(problems.front().text, ContainsSubstring("(is a folder; expected an ordinary file)"));
}

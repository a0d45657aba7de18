#include "runtime/population/availability_trace.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;

namespace {

virtual_time when(virtual_duration since) { return virtual_time(since); }

/// Error of reading `csv` for five clients; "" if there is none.
std::string complaints(const std::string& csv) {
  const scratch_folder folder;
  scenario from;
  from.clients.count = 5;
  from.devices.availability = device_availability::file;
  from.devices.availability_file = folder.path() / "trace.csv";
  write_file(from.devices.availability_file, csv);
  const auto read = read_availability_trace(from);
  std::string text;
  if (!read)
    for (const auto& diagnostic : read.error())
      text += diagnostic.where.substr(diagnostic.where.find("trace.csv")) + ": " + diagnostic.text + "\n";
  return text;
}

} // namespace

TEST_CASE("a client is online within its spans, including their begin and excluding their end") {
  const availability_trace trace(
      {{.client = {1}, .from = when(10s), .to = when(20s)}, {.client = {1}, .from = when(30s), .to = when(40s)}});
  const auto before = trace.window({1}, when(0s)), within = trace.window({1}, when(10s)),
             between = trace.window({1}, when(20s)), after = trace.window({1}, when(40s));
  CHECK_FALSE(before.within);
  CHECK(before.until == when(10s));
  CHECK(within.within);
  CHECK(within.until == when(20s));
  CHECK_FALSE(between.within);
  CHECK(between.until == when(30s));
  CHECK_FALSE(after.within);
  CHECK(after.until == never);
}

TEST_CASE("a client without spans is never online, and adjacent spans are joined") {
  const availability_trace trace(
      {{.client = {3}, .from = when(5s), .to = when(9s)}, {.client = {3}, .from = when(0s), .to = when(5s)}});
  CHECK(trace.window({3}, when(0s)).until == when(9s));
  CHECK_FALSE(trace.window({2}, when(0s)).within);
  CHECK(trace.window({2}, when(0s)).until == never);
  CHECK_FALSE(trace.window({4}, when(0s)).within);
}

TEST_CASE("the columns of a trace are found by their names") {
  CHECK(complaints("from,to,client,period\n0,1.5,4,\n\n2,3,0,5\n").empty());
}

TEST_CASE("errors of a trace have line numbers") {
  CHECK(complaints("client,from,to,site\n0,1,2,x\n") ==
        "trace.csv:1: the header names an unknown column 'site'; expected client, from, to, period\n");
  CHECK(complaints("client,from\n") ==
        "trace.csv:1: the header names no column 'to'; expected a first line such as client,from,to\n");
  CHECK(complaints("client,from,to\n5,0,1\n1,0\n1,-1,2\n1,4,4\n1,0,x\n") ==
        "trace.csv:2: client = 5: expected a whole number from 0 to 4 (clients.count = 5)\n"
        "trace.csv:3: the line has 2 fields; expected 3, one for each column of the header\n"
        "trace.csv:4: from = -1: expected seconds from the beginning of the run, from 0 to 9e9\n"
        "trace.csv:5: from = 4, to = 4: expected a time that ends after it begins\n"
        "trace.csv:6: to = x: expected seconds from the beginning of the run, from 0 to 9e9\n");
  CHECK(complaints("client,from,to\n1,5,9\n0,5,9\n1,0,5\n").empty()); // adjacent spans
  CHECK(complaints("client,from,to\n1,5,9\n1,0,6\n1,20,30\n1,22,25\n") ==
        "trace.csv:2: client 1: from = 5 lies within its span of line 3, which ends at 6; expected spans of a client "
        "that do not overlap\n"
        "trace.csv:5: client 1: from = 22 lies within its span of line 4, which ends at 30; expected spans of a client "
        "that do not overlap\n");
  CHECK(complaints("client,from,to,period\n1,5,9,8\n2,5,9,9\n") ==
        "trace.csv:2: to = 9, period = 8: expected a period that does not end before its spans\n");
}

TEST_CASE("a repeated trace restarts after its period: the key's, its last time, or that of its column") {
  const scratch_folder folder;
  scenario from;
  from.clients.count = 4;
  from.devices.availability = device_availability::file;
  from.devices.trace_end = trace_end_rule::repeat;
  from.devices.availability_file = folder.path() / "trace.csv";
  write_file(from.devices.availability_file, "client,from,to,period\n0,10,20,\n1,10,20,50\n2,0,5,\n");
  const auto trace = *read_availability_trace(from);
  CHECK(trace->window({0}, when(25s)).until == when(30s)); // offline from 20 to 30 s
  CHECK(trace->window({0}, when(35s)).until == when(40s));
  CHECK(trace->window({1}, when(20s)).until == when(60s));
  CHECK_FALSE(trace->window({1}, when(20s)).within);
  CHECK(trace->window({1}, when(60s)).until == when(70s));
  CHECK(trace->window({2}, when(3s)).within); // always online, in spans of 5 s
  CHECK(trace->window({2}, when(3s)).until == when(10s));
  CHECK_FALSE(trace->window({3}, when(0s)).within);
  CHECK(trace->window({3}, when(0s)).until == never);
}

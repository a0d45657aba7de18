#include "runtime/population/client_table.hpp"
#include "runtime/population/link_trace.hpp"
#include "runtime/population/population.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;

namespace {

virtual_time when(virtual_duration since) { return virtual_time(since); }

scenario with_links(const scratch_folder& folder, const std::string& csv) {
  scenario from;
  from.clients.count = 3;
  from.devices.link_file = folder.path() / "links.csv";
  write_file(from.devices.link_file, csv);
  return from;
}

std::string complaints(const std::string& csv) {
  const scratch_folder folder;
  const auto read = read_link_trace(with_links(folder, csv));
  std::string text;
  if (!read)
    for (const auto& diagnostic : read.error())
      text += diagnostic.where.substr(diagnostic.where.find("links.csv")) + ": " + diagnostic.text + "\n";
  return text;
}

// Client 1: 1 Mbit/s up for 10 s, nothing for 5 s, 3 Mbit/s from 15 to 20 s.
constexpr const char* three_stretches = "client,from,to,uplink_mbit,downlink_mbit\n1,0,10,1,2\n1,15,20,3,0\n";

} // namespace

TEST_CASE("a transfer takes until the spans of its link have carried its bits") {
  const scratch_folder folder;
  const auto links = *read_link_trace(with_links(folder, three_stretches));
  CHECK(links->names({1}));
  CHECK_FALSE(links->names({0}));
  CHECK(links->transfer_duration({1}, link_direction::up, 125'000, when(0s)) == 1s);                    // 1 Mbit
  CHECK(links->transfer_duration({1}, link_direction::up, 1'250'000, when(5s)) == 11s + 666'666'667ns); // 5 + 5 Mbit
  CHECK(links->transfer_duration({1}, link_direction::up, 125'000, when(12s)) == 3s + 333'333'334ns);
  CHECK(links->transfer_duration({1}, link_direction::up, 0, when(30s)) == 0s);
  CHECK(links->transfer_duration({1}, link_direction::up, 2'500'000, when(5s)) == 15s); // 5 + 15 Mbit, the maximum
  CHECK_FALSE(links->transfer_duration({1}, link_direction::up, 2'500'001, when(5s)));
  CHECK_FALSE(links->transfer_duration({1}, link_direction::down, 2'500'001, when(0s)));
}

TEST_CASE("a repeated trace restarts after its period") {
  const scratch_folder folder;
  auto from = with_links(folder, three_stretches);
  from.devices.trace_end = trace_end_rule::repeat;
  const auto links = *read_link_trace(from); // 25 Mbit up in 20 s
  CHECK(links->transfer_duration({1}, link_direction::up, 125'000, when(40s)) == 1s);
  CHECK(links->transfer_duration({1}, link_direction::up, 3'250'000, when(0s)) == 21s); // 26 Mbit
  CHECK(links->transfer_duration({1}, link_direction::up, 313 * 125'000, when(0s)) ==
        256s);                     // 12 periods, 10 and 3 Mbit
  from.devices.trace_period = 30s; // ten seconds without a link after the last span
  const auto longer = *read_link_trace(from);
  CHECK(longer->transfer_duration({1}, link_direction::up, 125'000, when(21s)) == 10s);
}

TEST_CASE("the population adds the latency, and a trace that has ended carries nothing") {
  const scratch_folder folder;
  auto from = with_links(folder, three_stretches);
  from.devices.latency = 100ms;
  from.devices.uplink_mbit = 8.0;
  const population clients(from, {.links = *read_link_trace(from)});
  CHECK(clients.devices().upload_time({.client = {1}, .bytes = 125'000}) == 1100ms);
  CHECK(clients.devices().upload_time({.client = {0}, .bytes = 1'000'000}) == 1100ms); // the key's 8 Mbit/s
  CHECK(clients.devices().upload_time({.client = {1}, .bytes = 1, .begins = when(20s)}) ==
        end_of_runs.time_since_epoch());
  const auto [mbit, until] = clients.devices().client_mbit({1}, link_direction::down, when(3s));
  CHECK(mbit == 2.0);
  CHECK(until == when(10s));
  const auto [between, again] = clients.devices().client_mbit({1}, link_direction::down, when(12s));
  CHECK(between == 0.0);
  CHECK(again == when(15s));
  CHECK(clients.devices().link_traces_end());
}

TEST_CASE("errors of a link file have line numbers") {
  CHECK(complaints(three_stretches).empty());
  CHECK(complaints("client,from,to,uplink_mbit\n") ==
        "links.csv:1: the header names no column 'downlink_mbit'; expected a first line such as "
        "client,from,to,uplink_mbit,downlink_mbit\n");
  CHECK(complaints("client,from,to,uplink_mbit,downlink_mbit\n1,0,10,-1,2\n2,5,5,1,1\n3,0,1,1,1\n") ==
        "links.csv:2: uplink_mbit = -1: expected megabits per second, from 0 to 9e9\n"
        "links.csv:3: from = 5, to = 5: expected a time that ends after it begins\n"
        "links.csv:4: client = 3: expected a whole number from 0 to 2 (clients.count = 3)\n");
  CHECK(complaints("client,from,to,uplink_mbit,downlink_mbit\n1,8,12,1,1\n1,0,10,1,2\n") ==
        "links.csv:2: client 1: from = 8 lies within its span of line 3, which ends at 10; expected spans of a client "
        "that do not overlap\n");
}

TEST_CASE("a period shorter than the trace is refused, in the column and in the key") {
  const scratch_folder folder;
  auto from = with_links(folder, three_stretches);
  from.devices.trace_end = trace_end_rule::repeat;
  from.devices.trace_period = 19s;
  const auto read = read_link_trace(from);
  REQUIRE_FALSE(read);
  CHECK(read.error().front().text == "to = 20: expected no span that ends after devices.trace_period = 19 s");
  CHECK(complaints("client,from,to,uplink_mbit,downlink_mbit,period\n1,0,10,1,2,9.5\n") ==
        "links.csv:2: to = 10, period = 9.5: expected a period that does not end before its spans\n");
}

TEST_CASE("an error message finds the end of a client's trace") {
  const scratch_folder folder;
  const auto from = with_links(folder, "client,from,to,uplink_mbit,downlink_mbit\n1,20,30.5,1,1\n1,0,10,1,1\n");
  const client_table_format form{.file = from.devices.link_file, .clients = from.clients.count};
  const auto last = last_span_of(form, client_id{1});
  REQUIRE(last);
  CHECK(last->where == (folder.path() / "links.csv").string() + ":2");
  CHECK(last->ends_s == 30.5);
  CHECK_FALSE(last_span_of(form, client_id{2}));
  const auto of_all = last_span_of(form);
  REQUIRE(of_all);
  CHECK(of_all->client == client_id{1});
}

#include "actors/run/memory_estimate.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
namespace mneme {
namespace {

// Bytes of one client. The value for a client at work was measured as the peak memory of runs with 1,000, 50,000 and
// 150,000 clients in a cohort, minus the memory of their rows (4,350 to 4,700; asynchronous runs 4,540).
constexpr double idle_bytes = 4.0;           // client_pool::client_record
constexpr double bytes_per_task = 4.0;       // offset of the client's rows; only in partitions that give each row to
                                             // one client
constexpr double changing_bytes = 24.0;      // the client's next event; only with churn or changes of task
constexpr double at_work_bytes = 4'700.0;    // the client's coroutine, actor, assignment, events and parked job
constexpr double bytes_per_row = 8.0;        // row index
constexpr std::int64_t rows_of_client = 100; // assumed number if the real one depends on the data

bool deals_rows(partition_kind kind) { return kind != partition_kind::class_share && kind != partition_kind::sampled; }

bool changes_by_itself(const scenario& s) {
  return s.devices.availability != device_availability::always || s.enrolment.kind == enrolment_kind::random ||
         s.tasks.transition == task_transition::staggered;
}

} // namespace

std::vector<memory_part> estimate_client_memory(const scenario& s) {
  const auto count = static_cast<double>(s.clients.count);
  const bool async = s.rounds.mode == round_mode::async;
  const auto stated = async ? s.rounds.concurrency : s.rounds.cohort;
  const auto at_work = static_cast<double>(stated > 0 ? std::min(stated, s.clients.count) : s.clients.count);
  const auto rows = s.partition.kind == partition_kind::sampled ? s.partition.rows_per_client : rows_of_client;
  const bool rows_weigh =
      s.partition.kind == partition_kind::sampled && bytes_per_row * static_cast<double>(rows) > at_work_bytes;
  double each = idle_bytes + (async ? 1.0 / 8.0 : 0.0);
  if (deals_rows(s.partition.kind))
    each += bytes_per_task * static_cast<double>(s.tasks.count);
  if (changes_by_itself(s))
    each += changing_bytes;
  return {{"clients", "clients.count", count * each},
          {"clients in flight",
           rows_weigh ? "partition.rows_per_client"
           : async    ? "rounds.concurrency"
                      : "rounds.cohort",
           at_work * (at_work_bytes + bytes_per_row * static_cast<double>(rows))}};
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; unit + 1 < units.size() && bytes >= 1024.0; ++unit)
    bytes /= 1024.0;
  return fmt::format("{:.{}f} {}", bytes, unit > 0 && bytes < 10.0 ? 1 : 0, units[unit]);
}

diagnostics check_client_memory(const scenario& settings, const memory_budget& room) {
  const auto parts = estimate_client_memory(settings);
  double sum = 0.0;
  std::string each;
  for (const auto& part : parts) {
    sum += part.bytes;
    each += fmt::format("{}{} about {}", each.empty() ? "" : ", ", part.name, bytes_text(part.bytes));
  }
  if (sum <= static_cast<double>(room.bytes))
    return {};
  const auto most =
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const bool async = settings.rounds.mode == round_mode::async;
  return {
      {settings.where(most->key),
       fmt::format("clients.count = {} with {} = {}: needs more memory than the {} that are {}: {}. Expected fewer {}",
                   settings.clients.count, async ? "rounds.concurrency" : "rounds.cohort",
                   async ? settings.rounds.concurrency : settings.rounds.cohort,
                   bytes_text(static_cast<double>(room.bytes)), room.source, each,
                   most->name == "clients"                    ? "clients"
                   : most->key == "partition.rows_per_client" ? "rows of each, partition.rows_per_client"
                                                              : "clients in flight")}};
}

} // namespace mneme

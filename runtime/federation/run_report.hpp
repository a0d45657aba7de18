/// run_report: outcome and counters of a run.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <map>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

enum class run_status : std::uint8_t { done, failed, interrupted };

struct run_report {
  run_status status = run_status::done;
  std::string error{};
  std::optional<client_id> waits_for{}; ///< If failed: the client whose next event never happens.
  bool no_reachable_clients = false;    ///< If failed: the availability traces of all clients have ended.
  digest128 digest{}, trace_digest{};
  virtual_time ended{};
  std::int64_t rounds = 0, client_rounds = 0, late_uploads = 0, dropped = 0, enrolled_max = 0;
  std::int64_t joined = 0, left = 0, transitions = 0; ///< Enrollments, departures and task changes of single clients.
  std::int64_t staleness_sum = 0, staleness_max = 0;  ///< Staleness of delivered uploads, in server steps.
  std::int64_t upload_bytes = 0, download_bytes = 0;
  std::int64_t proxy_bytes = 0;           ///< Bytes exchanged with the proxy.
  std::int64_t observations = 0;          ///< Number of observations by clients outside the cohort.
  std::map<std::string, double> counts{}; ///< Named sums over the results of all clients.
  std::int64_t batches = 0, jobs = 0;     ///< Batches and jobs of client rounds; jobs / batches is the mean fused
                                          ///< width.
  std::optional<std::vector<double>> client_accuracy_deciles{};
};

} // namespace mneme

/// run_report: how a run ended, and what was counted on its way.
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
  std::optional<client_id> waits_for{}; ///< failed: what this client does would never be over.
  bool reaches_nobody = false;          ///< failed: the availability traces of all clients have ended.
  digest128 digest{}, trace_digest{};
  virtual_time ended{};
  std::int64_t rounds = 0, client_rounds = 0, late_uploads = 0, dropped = 0, enrolled_max = 0;
  std::int64_t joined = 0, left = 0, transitions = 0; ///< Clients did so at times of their own.
  std::int64_t staleness_sum = 0, staleness_max = 0;  ///< Delivered uploads were so old, in server steps.
  std::int64_t upload_bytes = 0, download_bytes = 0;
  std::int64_t proxy_bytes = 0; ///< All that went to and from the proxy.
  std::int64_t looks = 0;       ///< Clients outside the cohort that have looked at their rows.
  std::map<std::string, double> counts{}; ///< Sums over clients' results, by key.
  std::int64_t batches = 0, jobs = 0; ///< Clients' jobs; their ratio is the mean fused width.
  std::optional<std::vector<double>> client_accuracy_deciles{};
};

} // namespace mneme

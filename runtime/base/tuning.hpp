/// tuning: every number that was chosen by measuring, with the measurement that chose it. None of them changes a bit on a CPU.
#pragma once
#include <cstdint>
namespace mneme::tuning {

// -- who computes -----------------------------------------------------------------------------------------------------

inline constexpr double worth_waking = 1e6;
inline constexpr double worth_hosting = 2e6;
inline constexpr double short_job_min = 1e4;
inline constexpr double short_job_max = 1e7;
inline constexpr std::int64_t short_batches_per_worker = 8;
inline constexpr std::int64_t workers_fed = 8;
inline constexpr int mailbox_polls = 5000;
inline constexpr std::int64_t reported_bytes_max = std::int64_t{1} << 17;

} // namespace mneme::tuning

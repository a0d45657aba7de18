/// tuning: constants chosen by measurement, with the measurement.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
namespace mneme::tuning {

// B1 to B7 are benchmarks of tools/bench. Unless noted, no bit and no digest depends on a constant, and the machine had
// Xeon cores with AVX-512. Block sizes within one kernel are in the kernel's file.

// -- distribution of work (actors/compute) ----------------------------------------------------------------------------

/// Minimum number of multiplications for which waking an idle worker pays; waking takes about 80 us. Evaluations of
/// `linear` on Fashion-MNIST with four threads: 206 us per client round up to 1e7, 316 at 1e8.
inline constexpr double worth_waking = 1e6;
/// Multiplications of a wave per worker that hosts shards. B2 with two threads and cohorts of 4, 8, 16 and 32, whose
/// waves have 0.5 to 4e6: 18.4, 14.4, 11.3, 11.6 us per client round (wall clock) with one host, 22.4, 16.4, 13.4, 11.9
/// with two.
inline constexpr double worth_hosting = 2e6;
/// Range of multiplications of a client whose training counts as short. Below it, a wave ends before a second thread is
/// awake. Above it, batches take milliseconds: smaller batches gain nothing, and a worker that shares the control
/// thread delays results of others. ResNet-18, one round of 50 clients with uploads of 45 MB, peak memory with two and
/// four threads: 1,023 and 1,728 MiB shared, 833 and 1,251 MiB not shared, at equal times.
inline constexpr double short_job_min = 1e4, short_job_max = 1e7;
/// Batches per worker of a wave of short jobs. B2 with two threads: 8.9, 7.4 and 8.3 us per client round (wall clock)
/// with 4, 8 and 16.
inline constexpr std::int64_t short_batches_per_worker = 8;
/// Number of times an idle worker polls its mailbox before it sleeps, 0.2 us each. B2 with two threads on two
/// cores: 10.9, 10.0, 9.4 and 9.0 us per client round (wall clock) with 0, 1,000, 3,000 and 10,000 polls.
inline constexpr int mailbox_polls = 5000;
/// Workers per thread of other actors. Two such threads woke each other with every message: B3 took 3.6 us instead
/// of 2.4 with two threads. The number itself is a guess: no machine with many cores was available.
inline constexpr std::int64_t workers_fed = 8;
/// Finished uploads are reported at this size while others are still running. B2 with two threads: 7.9, 7.4 and 8.4 us
/// per client round (wall clock) at 32, 128 and 512 KiB.
inline constexpr std::int64_t reported_bytes_max = std::int64_t{1} << 17;
/// Rows per evaluation job. Losses are summed per job, so digests depend on it.
inline constexpr std::int64_t evaluation_rows = 1000;

// -- messages (runtime/federation) ------------------------------------------------------------------------------------

/// Arrived uploads are sent to the server in bundles of at most this number or size, which fit a cache.
inline constexpr std::size_t bundled_uploads_max = 32;
inline constexpr std::int64_t bundled_bytes_max = std::int64_t{1} << 19;
/// Limit of uploads that the server has received but not folded.
inline constexpr std::int64_t unfolded_bytes_max = std::int64_t{64} << 20;
/// Results of a wave up to this size fit a cache. With larger ones, jobs due first come first, and a cohort does not
/// start without a release.
inline constexpr std::int64_t cached_outcomes_bytes = std::int64_t{16} << 20;

/// Events handled before other inputs get their turn: 20 ms of a population with churn.
inline constexpr std::int64_t events_without_pause = 1 << 16;
/// Events without a delivery or closed round after which a run counts as stalled, and additional events per client. A
/// guess: a day with two changes per client has two events per client; a run handles a million per second.
inline constexpr std::int64_t fruitless_events_max = 100'000, fruitless_events_of_client = 100;

// -- nodes (actors/nodes) ---------------------------------------------------------------------------------------------

/// Tensors that a node caches. Two broadcasts of 45 MB with their messages would exceed the 256 MiB that such a run may
/// cost a node; one does not.
inline constexpr std::size_t node_tensor_bytes = std::size_t{64} << 20;
/// reported_bytes_max on a node, where each report wakes the sending thread: about one batch of short jobs. A round of
/// B2 over a node: 3.3 ms; 3.6 ms at 128 KiB.
inline constexpr std::int64_t node_reported_bytes_max = std::int64_t{1} << 20;
/// Limit of unsent results on a node before its workers pause.
inline constexpr std::uint64_t node_results_bytes = std::uint64_t{64} << 20;
/// On machines with at least this many cores, threads that wait for nodes or for a run poll before they sleep:
/// connection threads for frames_looked_for, the run's threads for frames_awaited. A round of B2 over a node in ms: 3.5
/// on four cores, 3.9 without polling; on two cores 3.3 to 4.1 (fastest eighth, median), 2.7 to 3.2 without polling.
inline constexpr unsigned polling_cores = 4;
inline constexpr std::chrono::microseconds frames_looked_for{300}, frames_awaited{1000};
/// Messages that an actor of a run with nodes handles per turn. Polling actors have many. In a round of B2 with polling
/// on two cores, nothing is computed for 0.9 ms with 16, for 0.5 ms with one.
inline constexpr std::size_t messages_of_turn = 1;
/// Shards per worker of the first nodes if nodes can be added later; a node without a shard has no work. A guess.
inline constexpr std::int64_t spare_shards = 4;

// -- width of fused groups (runtime/training) -------------------------------------------------------------------------

/// Working set of a fused group, and maximum number of models in it.
struct width_limits {
  std::int64_t bytes_max;
  std::uint64_t models_max;
};
/// Half of a core's second-level cache (2 MiB on current servers). Milliseconds per client in groups of 1, 16 and 64:
/// mlp 33-17-10 0.56, 0.05, 0.03; 784-200-200-10 8, 11, 27. With 256 small models the cost of calls is negligible.
inline constexpr width_limits width_on_cpu{std::int64_t{1} << 20, 256};
/// Fits the memory of any device. Digests on a GPU depend on it.
inline constexpr width_limits width_on_gpu{std::int64_t{1} << 30, 1024};
/// Assumed rows of a full batch: all clients of a fuse key must choose the same width.
inline constexpr std::int64_t full_batch_rows = 256;
/// Rows per block of a forward pass, and limit of the bytes of its values and gradients. Sums over rows are computed
/// per block, so digests depend on all three.
inline constexpr std::int64_t block_rows_max = 128, block_rows_min = 16;
inline constexpr std::int64_t block_bytes_max = std::int64_t{1} << 29;

// -- memory (runtime/training) ----------------------------------------------------------------------------------------

/// Bytes of the next step's rows that are prefetched during a step.
inline constexpr std::int64_t prefetched_bytes_max = std::int64_t{256} << 10;
/// Bytes of upcoming rows, and of one row, that are prefetched; the processor prefetches what follows.
inline constexpr std::int64_t prefetched_rows_bytes = 2048, prefetched_of_row = 1024;

} // namespace mneme::tuning

/// tuning: constants that were chosen by measurement; each comment states the measurement.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
namespace mneme::tuning {

// B1 to B7 are benchmarks in tools/bench. Unless noted, results and digests do not depend on these constants. They were
// measured on Xeon cores with AVX-512. Block sizes of single kernels are in the kernels' files.

// -- distribution of work (actors/compute) ----------------------------------------------------------------------------

/// Minimum number of multiplications for which waking an idle worker pays off; waking takes about 80 us. Evaluations of
/// `linear` on Fashion-MNIST with four threads took 206 us per client round up to 1e7, and 316 us at 1e8.
inline constexpr double wake_multiplications_min = 1e6;
/// Minimum number of multiplications of a wave for each worker that hosts shards. B2 with two threads and cohorts of 4,
/// 8, 16 and 32 (waves of 0.5e6 to 4e6): 18.4, 14.4, 11.3, 11.6 us wall clock per client round with one host; 22.4,
/// 16.4, 13.4, 11.9 us with two.
inline constexpr double host_multiplications_min = 2e6;
/// A training counts as short if its number of multiplications per client is in this range. Below the range, a wave
/// ends before a second thread wakes up. Above it, batches take milliseconds: smaller batches do not help, and a worker
/// on the control thread delays the results of other workers. Peak memory of one round of ResNet-18 with 50 clients and
/// uploads of 45 MB, with two and four threads: 1,023 and 1,728 MiB with a worker on the control thread, 833 and 1,251
/// MiB without, in equal times.
inline constexpr double short_job_min = 1e4, short_job_max = 1e7;
/// Batches per worker in a wave of short jobs. B2 with two threads and 4, 8 and 16 batches: 8.9, 7.4 and 8.3 us wall
/// clock per client round.
inline constexpr std::int64_t short_batches_per_worker = 8;
/// Number of times that an idle worker polls its mailbox before it sleeps; a poll takes 0.2 us. B2 with two threads on
/// two cores and 0, 1,000, 3,000 and 10,000 polls: 10.9, 10.0, 9.4 and 9.0 us wall clock per client round.
inline constexpr int mailbox_polls = 5000;
/// Number of workers for each thread that runs the other actors. With few workers a second such thread is harmful,
/// because the two wake each other with every message: B3 took 3.6 instead of 2.4 us with two threads. The value is a
/// guess, since no machine with many cores was available.
inline constexpr std::int64_t workers_per_actor_thread = 8;
/// Finished uploads are reported when they reach this size, while other jobs run. B2 with two threads and 32, 128 and
/// 512 KiB: 7.9, 7.4 and 8.4 us wall clock per client round.
inline constexpr std::int64_t reported_bytes_max = std::int64_t{1} << 17;
/// Rows per evaluation job. Losses are summed by job, so digests depend on this value.
inline constexpr std::int64_t evaluation_rows = 1000;

// -- messages (runtime/federation) ------------------------------------------------------------------------------------

/// Limits of a bundle of uploads for the server, in uploads and in bytes. A bundle fits into a cache.
inline constexpr std::size_t bundled_uploads_max = 32;
inline constexpr std::int64_t bundled_bytes_max = std::int64_t{1} << 19;
/// Limit in bytes of uploads that the server has received but not folded yet.
inline constexpr std::int64_t unfolded_bytes_max = std::int64_t{64} << 20;
/// Results of a wave up to this size fit into a cache. In larger waves, jobs are run in the order of their due times,
/// and a cohort starts only when it is released.
inline constexpr std::int64_t cached_outcomes_bytes = std::int64_t{16} << 20;

/// Number of events handled before other inputs. Handling them takes 20 ms for a population with churn.
inline constexpr std::int64_t events_without_pause = 1 << 16;
/// Number of events without progress after which a run counts as stalled: a base, plus a number per client. The values
/// are guesses: on a day with two changes per client there are two events per client, and a run handles a million
/// events per second.
inline constexpr std::int64_t stalled_events_max = 100'000, stalled_events_per_client = 100;

// -- nodes (actors/nodes) ---------------------------------------------------------------------------------------------

/// Size of a node's tensor cache. The memory limit of a run with broadcasts of 45 MB is 256 MiB per node: one broadcast
/// with its messages fits, two do not.
inline constexpr std::size_t node_tensor_bytes = std::size_t{64} << 20;
/// The value of reported_bytes_max for nodes, about one batch of short jobs. It is higher than reported_bytes_max,
/// because each report wakes the sending thread. A round of B2 with a node takes 3.3 ms; with 128 KiB it takes 3.6 ms.
inline constexpr std::int64_t node_reported_bytes_max = std::int64_t{1} << 20;
/// Limit in bytes of unsent results on a node; above it the node's workers pause.
inline constexpr std::uint64_t node_results_bytes = std::uint64_t{64} << 20;
/// On machines with at least this many cores, threads poll before they sleep: connection threads for io_spin_time, the
/// run's threads for actor_spin_time. On four cores, a round of B2 with a node takes 3.5 ms with polling and 3.9 ms
/// without. On two cores it takes 3.3 to 4.1 ms with polling and 2.7 to 3.2 ms without (fastest eighth to median).
inline constexpr unsigned polling_cores = 4;
inline constexpr std::chrono::microseconds io_spin_time{300}, actor_spin_time{1000};
/// Messages that an actor handles per turn in a run with nodes. Polling actors send many messages. In a round of B2
/// with polling on two cores, workers are idle for 0.9 ms with 16 messages and for 0.5 ms with one.
inline constexpr std::size_t messages_of_turn = 1;
/// Number of shards per worker of the first nodes, if nodes can be added later: a node without a shard has no work. The
/// value is a guess.
inline constexpr std::int64_t spare_shards = 4;

// -- width of fused groups (runtime/training) -------------------------------------------------------------------------

/// Limits of a fused group: its working set in bytes, and its number of models.
struct width_limits {
  std::int64_t bytes_max;
  std::uint64_t fused_clients_max;
};
/// Half of a core's L2 cache (2 MiB on current servers). Milliseconds per client in groups of 1, 16 and 64 models: mlp
/// 33-17-10 0.56, 0.05, 0.03; mlp 784-200-200-10 8, 11, 27. With 256 small models the cost of calls is negligible.
inline constexpr width_limits width_on_cpu{std::int64_t{1} << 20, 256};
/// Fits the memory of all supported GPUs. Digests on a GPU depend on it.
inline constexpr width_limits width_on_gpu{std::int64_t{1} << 30, 1024};
/// Number of rows assumed for a full batch, because all clients with one fuse key must compute the same width.
inline constexpr std::int64_t full_batch_rows = 256;
/// Smallest and largest number of rows per block of a forward pass, and limit of the bytes of its values and gradients.
/// Sums over rows are computed by block, so digests depend on all three.
inline constexpr std::int64_t block_rows_max = 128, block_rows_min = 16;
inline constexpr std::int64_t block_bytes_max = std::int64_t{1} << 29;

// -- memory (runtime/training) ----------------------------------------------------------------------------------------

/// Bytes of the next step's rows that are prefetched during a step.
inline constexpr std::int64_t prefetched_bytes_max = std::int64_t{256} << 10;
/// Number of bytes that are prefetched of all upcoming rows together, and of one row. The processor prefetches the
/// rest.
inline constexpr std::int64_t prefetched_rows_bytes = 2048, prefetched_of_row = 1024;

} // namespace mneme::tuning

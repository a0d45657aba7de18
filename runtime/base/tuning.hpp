/// tuning: the numbers that were chosen by measuring, each with the measurement that chose it.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
namespace mneme::tuning {

// B1 to B7 are the benchmarks of tools/bench. Where nothing else is said, no bit and no digest depends on a number, and
// the machine had Xeon cores with AVX-512. The sizes of blocks within one kernel stand with the kernel.

// -- who computes (actors/compute) ------------------------------------------------------------------------------------

/// Multiplications for which it pays to wake a worker that waits, about 80 us. Evaluations of `linear` on Fashion-MNIST
/// with four threads: 206 us a client-round up to 1e7, 316 at 1e8.
inline constexpr double worth_waking = 1e6;
/// Multiplications of a wave for each worker that hosts shards. B2 with two threads and cohorts of 4, 8, 16 and 32,
/// whose waves have 0.5 to 4e6: 18.4, 14.4, 11.3, 11.6 us a client-round by the clock with one host, 22.4, 16.4, 13.4,
/// 11.9 with two.
inline constexpr double worth_hosting = 2e6;
/// Multiplications of a client whose training is short. Below, a wave is over before a second thread is awake; above,
/// batches take milliseconds: cutting them smaller wins nothing, and a first worker that shares the thread of control
/// holds up what others have computed. ResNet-18, one round of 50 clients with uploads of 45 MB, peak with two threads
/// and with four: 1,023 and 1,728 MiB shared, 833 and 1,251 MiB with threads of their own, at equal times.
inline constexpr double short_job_min = 1e4, short_job_max = 1e7;
/// Batches of a wave of short jobs for each worker. B2 with two threads: 8.9, 7.4 and 8.3 us a client-round by the
/// clock with 4, 8 and 16 of them.
inline constexpr std::int64_t short_batches_per_worker = 8;
/// How often a worker without work looks into its mailbox before it sleeps, 0.2 us each. B2 with two threads on two
/// cores: 10.9, 10.0, 9.4 and 9.0 us a client-round by the clock with 0, 1,000, 3,000 and 10,000 looks.
inline constexpr int mailbox_polls = 5000;
/// Workers that one thread of actors feeds. Two such threads woke each other with every message: B3 took 3.6 us instead
/// of 2.4 with two threads. The number itself is a guess, because no machine with many cores was at hand.
inline constexpr std::int64_t workers_fed = 8;
/// Uploads of rounds that finish while others are at work are reported at so many bytes. B2 with two threads: 7.9, 7.4
/// and 8.4 us a client-round by the clock at 32, 128 and 512 KiB.
inline constexpr std::int64_t reported_bytes_max = std::int64_t{1} << 17;
/// Rows of one job of an evaluation. Losses are summed job by job, so digests depend on it.
inline constexpr std::int64_t evaluation_rows = 1000;

// -- what is handed on (runtime/federation) ---------------------------------------------------------------------------

/// Uploads that have arrived go to the server at so many, or at so many bytes, which are still in a cache.
inline constexpr std::size_t bundled_uploads_max = 32;
inline constexpr std::int64_t bundled_bytes_max = std::int64_t{1} << 19;
/// The server has to fold what it was given before it is given more than this.
inline constexpr std::int64_t unfolded_bytes_max = std::int64_t{64} << 20;
/// Outcomes of a wave that wait for nothing worse than a cache. Of larger ones the first that are due come first, and a
/// cohort does not start at once.
inline constexpr std::int64_t cached_outcomes_bytes = std::int64_t{16} << 20;

/// Events handled before others get their turn: 20 ms of a population that comes and goes.
inline constexpr std::int64_t events_without_pause = 1 << 16;
/// Events without any upload or closed round after which a run is taken to have come to a dead end, and more for each
/// client. A guess: a day of two changes for each client has two for each, and a second of a run has a million.
inline constexpr std::int64_t fruitless_events_max = 100'000, fruitless_events_of_client = 100;

// -- nodes (actors/nodes) ---------------------------------------------------------------------------------------------

/// Tensors that a node keeps because they may come again: two broadcasts of 45 MB and what comes with them would not
/// fit into the 256 MiB that a run with them may cost a node; one does.
inline constexpr std::size_t node_tensor_bytes = std::size_t{64} << 20;
/// The same as reported_bytes_max on a node, where each report wakes the thread that sends it: about a batch of short
/// jobs. B2 over a node, a round: 3.3 ms, 3.6 ms at 128 KiB.
inline constexpr std::int64_t node_reported_bytes_max = std::int64_t{1} << 20;
/// Results that wait for the network on a node before its workers wait, too.
inline constexpr std::uint64_t node_results_bytes = std::uint64_t{64} << 20;
/// Where a machine has so many cores, threads that wait for nodes, or for a run, look for messages before they sleep:
/// the connections' own for frames_looked_for, the run's for frames_awaited. B2 over a node, a round, in ms: 3.5 on
/// four cores, 3.9 without; 3.3 to 4.1 on two cores (fastest eighth, median), 2.7 to 3.2 without.
inline constexpr unsigned polling_cores = 4;
inline constexpr std::chrono::microseconds frames_looked_for{300}, frames_awaited{1000};
/// How many messages an actor of a run with nodes handles before others get their turn: who looks has many. Of a round
/// of B2 with polling, two cores: nothing is computed for 0.9 ms with 16, for 0.5 ms with one.
inline constexpr std::size_t messages_of_turn = 1;
/// Shards for each worker of the first nodes where others may be named later: a node without a shard has nothing to do.
/// A guess.
inline constexpr std::int64_t spare_shards = 4;

// -- how many models side by side (runtime/training) ------------------------------------------------------------------

/// The working set of a fused group, and the most models in it.
struct width_limits {
  std::int64_t bytes_max;
  std::uint64_t models_max;
};
/// Half of a core's second-level cache, which is 2 MiB on current servers. Milliseconds a client in groups of 1, 16 and
/// 64: mlp 33-17-10 0.56, 0.05, 0.03; 784-200-200-10 8, 11, 27. Beyond 256 small models calls cost next to nothing.
inline constexpr width_limits width_on_cpu{std::int64_t{1} << 20, 256};
/// A share of the memory that any device has. Digests on a GPU depend on it.
inline constexpr width_limits width_on_gpu{std::int64_t{1} << 30, 1024};
/// Rows that a full batch is taken to have: clients of one fuse key must choose alike.
inline constexpr std::int64_t full_batch_rows = 256;
/// Rows of a block of a pass, and the bytes of all its values and gradients. Sums over rows are taken block by block,
/// so digests depend on all three.
inline constexpr std::int64_t block_rows_max = 128, block_rows_min = 16;
inline constexpr std::int64_t block_bytes_max = std::int64_t{1} << 29;

// -- memory (runtime/training) ----------------------------------------------------------------------------------------

/// Bytes of the next step's rows that are fetched while a step is computed.
inline constexpr std::int64_t prefetched_bytes_max = std::int64_t{256} << 10;
/// Bytes of rows that are about to be read, and of one row: what follows the processor fetches by itself.
inline constexpr std::int64_t prefetched_rows_bytes = 2048, prefetched_of_row = 1024;

} // namespace mneme::tuning

/// feature_gan: a program that trains an AC-GAN on features, for clients and server (Qi et al. 2023, FedCIL).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/fed_cil/gan_step.hpp"
#include <functional>
namespace mneme {

// Axes: n rows of a call, C classes of the run, D features, G weights of a generator, P weights of a critic, M
// generators of clients. A mask [C] float32 has ones at the selected classes.

/// Names of the program's tensors.
namespace gan_tensors {
inline constexpr const char *generator = "generator", *critic = "critic"; ///< [G], [P]; adam::save() defines the names
                                                                          ///< of their moments
inline constexpr const char *features = "features", *labels = "labels";   ///< [n, D], [n] int64
inline constexpr const char* batches = "batches"; ///< [] int64: number of batches already read in the task, if rows are
                                                  ///< shuffled
inline constexpr const char* classes_so_far = "classes_so_far"; ///< [C] mask: classes from which labels of fakes are
                                                                ///< drawn
inline constexpr const char *old_generator = "old_generator", *old_classes = "old_classes"; ///< [G], [C] mask
inline constexpr const char* server_generator = "server_generator";                         ///< [G]
inline constexpr const char* available = "available"; ///< [C] mask: labels that the server's rows may have
inline constexpr const char *generators = "generators", *fresh = "fresh";                       ///< [M, G], [c] int64
inline constexpr const char* own_classes = "own_classes";                                       ///< [M, C] masks
inline constexpr const char *old_generators = "old_generators", *past_classes = "past_classes"; ///< [M', G], [M', C]
} // namespace gan_tensors

/// A program that trains generator and critic against each other on features with gan_step(). Reads both nets,
/// `classes_so_far`, and real rows from one of these sources:
/// - `features` with `labels`: a client's rows, drawn with replacement, or shuffled if `batches` is given;
/// - `generators` with `fresh`: rows made by the generators in turn, with the labels in `fresh` in turn;
/// - `generators` with `own_classes`: every generator makes a batch of its own classes, and a step draws a
///   class-balanced batch from the union of these batches.
///
/// Optional inputs: `old_generator` with `old_classes` adds a replayed batch. `old_generators` with `past_classes` adds
/// a replayed batch that is class-balanced like that of `own_classes`. `server_generator` with `available` adds the
/// consistency terms. Returns both nets.
[[nodiscard]] program_ref gan_program(std::shared_ptr<const feature_gan> gan, const gan_training& training);

/// Returns the row positions of batch `number`, counted over all passes. Each pass has its own shuffle; a short last
/// batch is dropped (userbase.py:36 of the official code).
/// @param stream key of the shuffles; its `visit` is overwritten
/// @pre rows >= batch
[[nodiscard]] std::vector<std::int64_t> batch_of_shuffle(std::int64_t rows, std::int64_t batch, std::int64_t number,
                                                         rng_key stream);

/// A class-balanced batch from a pool.
struct choose_balanced_rows {
  std::vector<std::int64_t> labels{}, places{}; ///< [n] each; places are row indices within the pool
};

/// Draws `rows` labels uniformly from the classes of the pool, and a random row of each label (get_balanced_samples of
/// the official code).
/// @param pool labels of the pool's rows, not empty
/// @param draw_below returns a random number below its argument; it is called for each label and then for its row
[[nodiscard]] choose_balanced_rows balanced(const std::vector<std::int64_t>& pool, std::int64_t rows,
                                            const std::function<std::uint64_t(std::uint64_t)>& draw_below);

} // namespace mneme

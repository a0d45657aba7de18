/// feature_gan: the game of an AC-GAN of features as a program, of a client or of the server (Qi et al. 2023, FedCIL).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/fed_cil/gan_step.hpp"
#include <functional>
namespace mneme {

// Axes: n rows of a call, C classes of the run, D features, G weights of a generator, P of a critic; M generators of
// clients. A mask [C] float32 has ones at classes.

/// Names of the game's tensors.
namespace gan_tensors {
inline constexpr const char *generator = "generator", *critic = "critic"; ///< [G], [P]; moments as adam saves them
inline constexpr const char *features = "features", *labels = "labels";   ///< [n, D], [n] int64
inline constexpr const char* batches = "batches"; ///< [] int64: read before, of the task, where rows are shuffled
inline constexpr const char* classes_so_far = "classes_so_far"; ///< [C] mask: labels of fakes, where drawn
inline constexpr const char *old_generator = "old_generator", *old_classes = "old_classes"; ///< [G], [C] mask
inline constexpr const char* server_generator = "server_generator";                         ///< [G]
inline constexpr const char* available = "available"; ///< [C] mask: labels that the server's rows may have
inline constexpr const char *generators = "generators", *fresh = "fresh";                       ///< [M, G], [c] int64
inline constexpr const char* own_classes = "own_classes";                                       ///< [M, C] masks
inline constexpr const char *old_generators = "old_generators", *past_classes = "past_classes"; ///< [M', G], [M', C]
} // namespace gan_tensors

/// A program that trains generator and critic against each other on rows of features, by gan_step(). Reads both nets,
/// `classes_so_far`, and one of
///   - `features` with `labels`: a client's rows, drawn with replacement, or, with `batches`, shuffled;
///   - `generators` with `fresh`: rows that these make in turn, of the labels in turn;
///   - `generators` with `own_classes`: each makes a batch of its own classes, and a step takes one of them all whose
///     labels are uniform over those present.
/// `old_generator` with `old_classes` adds a replayed batch, `old_generators` with `past_classes` one as from the last;
/// `server_generator` with `available` adds the consistency terms. Ends with both nets.
[[nodiscard]] program_ref gan_program(std::shared_ptr<const feature_gan> gan, const gan_training& with);

/// Places of a batch among a client's rows: passes over them are shuffles, each of its own draw, whose last short batch
/// is left out (userbase.py:36 of the public code). @param number of the batch since the first @param stream the same
/// for all batches, but for `visit` @pre rows >= batch
[[nodiscard]] std::vector<std::int64_t> batch_of_shuffle(std::int64_t rows, std::int64_t batch, std::int64_t number,
                                                         rng_key stream);

/// Rows of a pool whose classes are alike often.
struct balanced_rows {
  std::vector<std::int64_t> labels{}, places{}; ///< [n] each; a place is one of the pool's.
};

/// `rows` labels, each drawn from those that the pool has, and for each a row of that label (the public code's
/// get_balanced_samples). @param pool labels of its rows, not empty @param drawn_below (n): a number below n, asked for
/// a label and then for its row
[[nodiscard]] balanced_rows balanced(const std::vector<std::int64_t>& pool, std::int64_t rows,
                                     const std::function<std::uint64_t(std::uint64_t)>& drawn_below);

} // namespace mneme

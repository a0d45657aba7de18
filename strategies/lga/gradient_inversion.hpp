/// gradient_inversion: images from the gradients that they leave in a small random net, as GLFC's and LGA's proxy makes
/// them (Zhu et al. 2019, "Deep Leakage from Gradients").
#pragma once
#include "runtime/method/program.hpp"
#include "runtime/models/model.hpp"
#include "strategies/lga/gradient_encoder.hpp"
namespace mneme {

// Axes: C channels, H height, W width of an image.

struct inversion_options {
  std::int64_t steps = 250; ///< Each takes the optimizer up to 20 evaluations.
  double learning_rate = 1.0;
  std::int64_t kept = 20;       ///< The last so many iterates are images.
  bool by_hand_on_cpus = true; ///< Else autograd does it there, too, ten times slower: to measure that.
};
/// A program that turns gradients ("1.weight" ... of one image, and "encoder") into "images" [kept, C, H, W] uint8,
/// "label" [1] int64 and "objective" [2] float64, at the start and at the end. Where the optimizer leaves the numbers
/// it starts again from other noise, up to three times; "objective" ends at -1 where all of them failed.
[[nodiscard]] program_ref inversion_program(const gradient_encoder& encoder, const inversion_options& with);

/// A program that turns a client's prototypes, its rows, into the gradients they leave in the encoder: the eight
/// tensors, [rows, ...]. Reads "encoder" and, where prototypes are `perturbed`, "weights" of the net and "seen", how
/// many classes were: 50 steps of descent on the net's binary cross-entropy move their pixels, as released.
[[nodiscard]] program_ref prototype_program(model_ref net, const gradient_encoder& encoder, bool perturbed);

} // namespace mneme

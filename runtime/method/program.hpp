/// program: work of a method's own that a worker runs with LibTorch's autograd on.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
#include <ATen/core/Tensor.h>
#include <span>
#include <string>
#include <vector>
namespace mneme {

// Axes: n rows of a job; C channels, H height, W width of an image.

struct program_job;

/// A tensor that a program promises: it is checked, and its bytes are known before it is made.
struct declared_tensor {
  std::string name{};
  std::vector<std::int64_t> shape{};
  at::ScalarType type = at::kFloat;
  [[nodiscard]] std::int64_t bytes() const;
};

/// How a program looks at rows of a data set.
struct row_look {
  augmentation_kind augment = augmentation_kind::none;
  rng_key stream{};       ///< Augmentation is keyed below it, row by row.
  std::int64_t epoch = 0; ///< Another one draws anew.
};

/// Rows of data sets as tensors on the device of the worker that runs a program.
class row_reader {
public:
  virtual ~row_reader() = default;
  [[nodiscard]] virtual at::Device device() const = 0;
  /// Rows as nets see them, [positions.size(), C, H, W] float32, normalised; C = H = 1 of vectors.
  /// @param positions in samples.rows, not rows of the data set
  [[nodiscard]] virtual at::Tensor read(const sample_view& samples, std::span<const std::int64_t> positions,
                                        const row_look& how) = 0;
};

/// What a program sees of one job, in one slice of it. Nothing of it may be written into.
struct program_call {
  tensor_map in{};        ///< The job's tensors, on the device; none of them wants a gradient.
  tensor_map state{};     ///< What the slice before has left; empty in the first one.
  std::int64_t slice = 0; ///< Slices of this job that are over.
  sample_view samples{};
  rng_key stream{};             ///< The job's; its index is the program's to choose.
  row_reader* reader = nullptr; ///< Never null while a program runs.

  [[nodiscard]] at::Device device() const { return reader->device(); }
  [[nodiscard]] at::Tensor images(std::span<const std::int64_t> positions, const row_look& how = {}) const {
    return reader->read(samples, positions, how);
  }
  /// [n] int64, on the device
  [[nodiscard]] at::Tensor labels() const;
};

/// Tensors as a program made them: with graphs, and as parts of others.
using named_tensors = std::map<std::string, at::Tensor>;

/// What one slice has made of a call.
struct program_step {
  named_tensors tensors{}; ///< Finished: what was declared. Else the state that the next slice is given.
  bool finished = true;    ///< False: there is a next slice.
  double progress = 1.0;   ///< In [0, 1], shown to the user.
};

/// Made by a method, once, and then const: shared by all clients and all threads. Nets and constants that it needs are
/// its members.
///
/// `run` is a pure function of its calls, in any company: on a CPU the bits that a call gets back do not depend on the
/// others. Loops over calls keep that, and so do stacked nets (model::differentiable), stacked_product() and
/// by_element() of runtime/models/function.hpp, sums and products element by element, and sums over axes of one call
/// alone. Grouped and vmapped convolutions do not: 16 of 16 of their gradients differ from those of one call alone; nor
/// does a plain exp or tanh of a stack where the values of one call fill no whole vectors.
/// tests/support/program_check.hpp compares.
///
/// Autograd is on: what needs gradients is detached from `in` first and then asked to (`leaf_of` in gradients.hpp).
/// Tensors that come back are detached and checked: names, shapes and types are those of outcome(), and every value is
/// finite. Graphs die with the slice. An exception becomes the job's error.
class program {
public:
  virtual ~program() = default;
  /// A word for errors and progress: "inversion".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Whatever changes control flow or arithmetic, besides names and shapes of the job's tensors: calls of programs of
  /// equal name and identity may be handed to either of them, together.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// What the job ends with. A function of shapes and options only.
  [[nodiscard]] virtual std::vector<declared_tensor> outcome(const program_job& job) const = 0;
  /// Bytes that one call works on at a time, where calls are stacked: as many come together as a core's cache, or a
  /// share of a device's memory, holds. 0: calls gain nothing by company and come one by one.
  [[nodiscard]] virtual std::int64_t stacked_bytes(const program_job& /*job*/) const { return 0; }
  /// Runs the next slice of every call; answers in their order. A slice should take seconds: between slices a run can
  /// be interrupted, what they have made is kept for a resumed run, and progress is shown. Calls are in the same slice.
  /// @pre at least one call
  [[nodiscard]] virtual std::vector<program_step> run(std::span<const program_call> calls) const = 0;
};
using program_ref = std::shared_ptr<const program>;

/// A program whose calls are computed one after the other.
class looped_program : public program {
public:
  [[nodiscard]] std::vector<program_step> run(std::span<const program_call> calls) const final {
    std::vector<program_step> steps;
    for (const auto& call : calls)
      steps.push_back(run_call(call));
    return steps;
  }

protected:
  [[nodiscard]] virtual program_step run_call(const program_call& call) const = 0;
};

/// A program with the tensors of one client, or of the server.
struct program_job {
  program_ref body{};
  tensors_ref in{};      ///< Whatever it reads besides rows; may be null.
  sample_view samples{}; ///< Rows that it may read; may be none.
  rng_key stream{};      ///< All that it draws is keyed below it.
  std::int64_t rows = 0; ///< Rows of the client's that it stands for, passes included: its virtual duration.
};
/// Throws std::invalid_argument unless the job has a program, and that declares tensors of known sizes, each once.
void check_promises(const program_job& job);
struct program_output {
  tensors_ref out{}; ///< What program::outcome declares, on the device.
};

} // namespace mneme

/// program: a method's own computation, which a worker runs with autograd enabled.
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

/// A tensor in a program's result. Its shape and type are declared in advance and checked.
struct declared_tensor {
  std::string name{};
  std::vector<std::int64_t> shape{};
  at::ScalarType type = at::kFloat;
  /// Size in bytes.
  [[nodiscard]] std::int64_t bytes() const;
};

/// Options for reading rows of a data set.
struct read_options {
  augmentation_kind augment = augmentation_kind::none;
  rng_key stream{};       ///< Random key for the augmentation of each row.
  std::int64_t epoch = 0; ///< Each epoch draws other augmentations.
};

/// Reads rows of data sets as tensors on the worker's device.
class row_reader {
public:
  virtual ~row_reader() = default;
  /// The worker's device.
  [[nodiscard]] virtual at::Device device() const = 0;
  /// Returns normalized rows, as nets receive them: [positions.size(), C, H, W] float32; C = H = 1 for vectors.
  /// @param positions indices into samples.rows, not into the data set
  [[nodiscard]] virtual at::Tensor read(const sample_view& samples, std::span<const std::int64_t> positions,
                                        const read_options& how) = 0;
};

/// Input of one slice of a program's job. Programs must not modify it.
struct program_call {
  tensor_map in{};        ///< The job's tensors, on the device; none requires a gradient.
  tensor_map state{};     ///< State returned by the previous slice; empty in the first slice.
  std::int64_t slice = 0; ///< Number of finished slices of this job.
  sample_view samples{};
  rng_key stream{};             ///< Random key of the job; the program chooses the index.
  row_reader* reader = nullptr; ///< Never null in program::run.

  [[nodiscard]] at::Device device() const { return reader->device(); }
  /// Reads rows of the job; see row_reader::read().
  [[nodiscard]] at::Tensor images(std::span<const std::int64_t> positions, const read_options& how = {}) const {
    return reader->read(samples, positions, how);
  }
  /// [n] int64 labels, on the device.
  [[nodiscard]] at::Tensor labels() const;
};

/// Tensors that a program has computed; they may be views or have autograd graphs.
using named_tensors = std::map<std::string, at::Tensor>;

/// Result of one slice of a call.
struct slice_result {
  named_tensors tensors{}; ///< The declared result if finished, otherwise the state for the next slice.
  bool finished = true;    ///< False if another slice follows.
  double progress = 1.0;   ///< Completed fraction in [0, 1], for display.
};

/// Created once by a method, then const and shared by all clients and threads. Nets and constants are data members.
///
/// `run` is a pure function of its calls. On a CPU, the bits of a call's result must not depend on the other calls.
/// This holds for loops over calls, stacked nets (model::differentiable), stacked_product() and by_element() of
/// runtime/models/function.hpp, element-wise sums and products, and sums over axes within one call. It does not hold
/// for grouped or vmapped convolutions: 16 of 16 gradients differed from those of single calls. Nor does it hold for
/// exp or tanh of a stack if one call's values do not fill whole vector registers. tests/support/program_check.hpp
/// compares the bits.
///
/// Autograd is enabled. Inputs that need gradients must first pass through leaf_of() (gradients.hpp). Returned tensors
/// are detached. Their names, shapes and types must equal those of outcome(), and all values must be finite. Autograd
/// graphs end with the slice. An exception becomes the error of the job.
class program {
public:
  virtual ~program() = default;
  /// Name for errors and progress messages, such as "inversion".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Identifies everything that changes control flow or arithmetic, except names and shapes of the job's tensors. Calls
  /// of programs with equal name and identity may share a batch; any one of these programs then runs the whole batch.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Declares the tensors of the job's result. Depends only on shapes and options.
  [[nodiscard]] virtual std::vector<declared_tensor> outcome(const program_job& job) const = 0;
  /// Working memory of one call in bytes if stacking calls saves time; 0 if calls run one by one. The number of stacked
  /// calls is limited by a core's cache or by a share of the device's memory.
  [[nodiscard]] virtual std::int64_t stacked_bytes(const program_job& /*job*/) const { return 0; }
  /// Runs the next slice of every call and returns the results in the order of the calls. All calls are in the same
  /// slice. A slice should take a few seconds. Between slices, the run can be interrupted, the state is saved so that
  /// the run can resume, and progress is printed. @pre at least one call
  [[nodiscard]] virtual std::vector<slice_result> run(std::span<const program_call> calls) const = 0;
};
using program_ref = std::shared_ptr<const program>;

/// Base class of programs that run one call after the other.
class looped_program : public program {
public:
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const final {
    std::vector<slice_result> steps;
    for (const auto& call : calls)
      steps.push_back(run_call(call));
    return steps;
  }

protected:
  [[nodiscard]] virtual slice_result run_call(const program_call& call) const = 0;
};

/// A job that runs a program with the tensors of one client or of the server.
struct program_job {
  program_ref body{};
  tensors_ref in{};      ///< Input tensors; may be null.
  sample_view samples{}; ///< Rows that the program may read; may be empty.
  rng_key stream{};      ///< Random key for all random numbers of the program.
  std::int64_t rows = 0; ///< Client rows processed over all passes; determines the virtual duration.
};
/// Throws std::invalid_argument unless the job has a program that declares each tensor once, with a known size.
void check_declared(const program_job& job);
struct program_output {
  tensors_ref out{}; ///< The result declared by program::outcome(), on the device.
};

} // namespace mneme

/// program_batch: jobs of one program at work, slice by slice.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/outcome_store.hpp"
#include "runtime/training/slice_store.hpp"
namespace mneme {

/// What is asked while jobs are computed.
class slice_watch {
public:
  virtual ~slice_watch() = default;
  /// Before each slice of a program. `progress` in [0, 1] is that of the slowest call. False: the run is to stop, and
  /// what is unfinished ends here.
  [[nodiscard]] virtual bool go_on(const std::string& name, double progress) = 0;
  /// Before each step of a training and each block of a pass, of which there are many. True: as go_on() is false.
  [[nodiscard]] virtual bool is_over() { return false; }
};

/// Runs programs to their ends with autograd on, whatever the caller has switched off. One outcome per job, in order;
/// if calls fail together they go on one by one, from the slice before, so that only the culprit's outcome is a text.
/// @param slices where states are kept between slices; on a CPU a job goes on with the one that is found there. Null:
/// nowhere @param watch may be null @param kept where outcomes of several slices are kept between runs, on a CPU; may
/// be null @pre not empty; programs of one fuse key
[[nodiscard]] outcomes run_programs(std::span<const job> batch, image_store& images, slice_store* slices = nullptr,
                                    slice_watch* watch = nullptr, outcome_store* kept = nullptr);

} // namespace mneme

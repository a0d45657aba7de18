#include "runtime/training/program_batch.hpp"
#include "runtime/base/check.hpp"
#include "runtime/training/failure_text.hpp"
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <algorithm>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>
namespace mneme {
namespace {

/// Rows of data sets by way of an executor's images.
class image_reader final : public row_reader {
public:
  explicit image_reader(image_store& images) : images_(images) {}
  [[nodiscard]] at::Device device() const override { return images_.device(); }
  [[nodiscard]] at::Tensor read(const sample_view& samples, std::span<const std::int64_t> positions,
                                const row_look& how) override {
    std::vector<std::int64_t> rows;
    std::vector<augmentation> augment;
    for (const auto position : positions) {
      if (position < 0 || position >= samples.size())
        throw std::out_of_range(fmt::format("row {} is asked for, and the job has {} rows", position, samples.size()));
      rows.push_back((*samples.rows)[static_cast<std::size_t>(position)]);
      if (how.augment != augmentation_kind::none)
        augment.push_back(drawn_augmentation(how.augment, how.stream, how.epoch, position));
    }
    const auto [channels, height, width] = samples.source->shape();
    auto out = at::empty({std::ssize(rows), channels, height, width}, at::device(images_.device()).dtype(at::kFloat));
    images_.gather_into(out, samples.source, rows, augment);
    return out;
  }

private:
  image_store& images_;
};

/// Handles of one's own: asking one of them for gradients changes nobody else's.
tensor_map handles_of(const tensor_map* tensors, const at::Device& device) {
  tensor_map made;
  if (tensors)
    for (const auto& [name, value] : *tensors)
      made.put(name, value.to(device).detach());
  return made;
}

/// The values alone: without graph, and without the larger tensor of which they are a part.
at::Tensor frozen(const at::Tensor& value) {
  auto plain = value.detach().contiguous();
  return plain.storage().nbytes() > plain.nbytes() ? plain.clone() : plain;
}

void check_values(const std::string& name, const at::Tensor& value) {
  if (!value.is_floating_point())
    return;
  const auto finite = value.isfinite().sum().item<std::int64_t>();
  if (finite < value.numel())
    throw std::runtime_error(fmt::format("'{}' has {} values of {} that are not finite; a smaller step or a bound on "
                                         "what is divided may help",
                                         name, value.numel() - finite, value.numel()));
}

std::string names_of(const named_tensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, value] : tensors)
    names.push_back("'" + name + "'");
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

tensors_ref checked_outcome(const program_job& job, const named_tensors& made) {
  const auto promised = job.body->outcome(job);
  auto out = std::make_shared<tensor_map>();
  for (const auto& wanted : promised) {
    const auto at = made.find(wanted.name);
    if (at == made.end())
      throw std::runtime_error(
          fmt::format("'{}' is missing: its outcome() declares it, and it returned {}", wanted.name, names_of(made)));
    const auto& found = at->second;
    if (!found.defined())
      throw std::runtime_error(fmt::format("'{}' is an undefined tensor", wanted.name));
    if (found.sizes() != at::IntArrayRef(wanted.shape))
      throw std::runtime_error(fmt::format("'{}' has the shape [{}], and its outcome() declares [{}]", wanted.name,
                                           fmt::join(found.sizes(), ", "), fmt::join(wanted.shape, ", ")));
    if (found.scalar_type() != wanted.type)
      throw std::runtime_error(fmt::format("'{}' is of type {}, and its outcome() declares {}", wanted.name,
                                           c10::toString(found.scalar_type()), c10::toString(wanted.type)));
    check_values(wanted.name, found);
    out->put(wanted.name, frozen(found));
  }
  if (made.size() > promised.size())
    throw std::runtime_error(fmt::format("it returned {}, and its outcome() declares {} of them", names_of(made),
                                         promised.size()));
  return out;
}

tensor_map checked_state(const named_tensors& made) {
  if (made.empty())
    throw std::runtime_error("a slice that is not the last one left no state for the next");
  tensor_map state;
  for (const auto& [name, value] : made) {
    if (!value.defined())
      throw std::runtime_error(fmt::format("'{}' of its state is an undefined tensor", name));
    state.put(name, frozen(value));
  }
  return state;
}

/// What autograd counts of writes into tensors.
std::vector<std::uint32_t> versions_of(const program_call& call) {
  std::vector<std::uint32_t> versions;
  for (const auto* tensors : {&call.in, &call.state})
    for (const auto& [name, value] : *tensors)
      versions.push_back(value.is_inference() ? 0 : static_cast<std::uint32_t>(value._version()));
  return versions;
}

/// Calls that go through their slices side by side.
class running_calls {
public:
  running_calls(std::span<const job> batch, image_store& images) : reader_(images) {
    for (const auto& queued : batch) {
      const auto& job = std::get<program_job>(queued.request);
      jobs_.push_back(&job);
      calls_.push_back({.in = handles_of(job.in.get(), images.device()),
                        .samples = job.samples,
                        .stream = job.stream,
                        .reader = &reader_});
      left_.push_back(left_.size());
    }
    results_.assign(batch.size(), job_outcome{std::string{}});
  }

  outcomes run(slice_watch* watch) {
    const auto name = jobs_.front()->body->name();
    while (!left_.empty()) {
      progress_ = 1.0;
      run_slice(std::exchange(left_, {}));
      if (!left_.empty() && watch && !watch->go_on(name, progress_)) {
        for (const auto i : left_)
          results_[i] = std::string(interrupted_text);
        break;
      }
    }
    return std::move(results_);
  }

private:
  /// The next slice of `which`; if it fails as a whole, of each alone.
  void run_slice(const std::vector<std::size_t>& which) {
    std::vector<program_call> together; // a call is handles
    std::vector<std::vector<std::uint32_t>> versions;
    for (const auto i : which) {
      together.push_back(calls_[i]);
      versions.push_back(versions_of(calls_[i]));
    }
    std::vector<program_step> steps;
    std::string why;
    bool failed = false;
    try {
      steps = jobs_.front()->body->run(together);
      if (steps.size() != which.size())
        throw std::runtime_error(fmt::format("it answered {} calls of {}", steps.size(), which.size()));
    } catch (...) {
      failed = true;
      why = failure_text();
    }
    if (failed && which.size() > 1) {
      for (const auto i : which)
        run_slice({i});
      return;
    }
    for (std::size_t k = 0; k < which.size(); ++k) {
      const auto i = which[k];
      try {
        if (failed)
          throw std::runtime_error(why);
        if (versions_of(together[k]) != versions[k])
          throw std::runtime_error("it writes into a tensor that it was given, which others read");
        settle(i, steps[k]);
      } catch (...) {
        results_[i] = fmt::format("program '{}': {}", jobs_[i]->body->name(), failure_text());
      }
    }
  }

  void settle(std::size_t i, program_step& step) {
    if (step.finished) {
      results_[i] = work_output{program_output{.out = checked_outcome(*jobs_[i], step.tensors)}};
      calls_[i].state = {};
      return;
    }
    calls_[i].state = checked_state(step.tensors);
    ++calls_[i].slice;
    progress_ = std::min(progress_, step.progress);
    left_.push_back(i);
  }

  image_reader reader_;
  std::vector<const program_job*> jobs_;
  std::vector<program_call> calls_;
  std::vector<std::size_t> left_; // calls that are not finished
  outcomes results_;
  double progress_ = 1.0;
};

/// Autograd as a fresh thread has it, whatever the caller has switched off.
class autograd_on {
public:
  autograd_on() : keys_(c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})), gradients_(true) {}

private:
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode gradients_;
};

} // namespace

outcomes run_programs(std::span<const job> batch, image_store& images, slice_watch* watch) {
  MNEME_CHECK(!batch.empty());
  const autograd_on tracking;
  return running_calls(batch, images).run(watch);
}

} // namespace mneme

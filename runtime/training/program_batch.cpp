#include "runtime/training/program_batch.hpp"
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/training/job_validation.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>
#include <system_error>
namespace mneme {
namespace {

/// Reads rows of data sets through an executor's image_store.
class image_reader final : public row_reader {
public:
  explicit image_reader(image_store& images) : images_(images) {}
  [[nodiscard]] at::Device device() const override { return images_.device(); }
  [[nodiscard]] at::Tensor read(const sample_view& samples, std::span<const std::int64_t> positions,
                                const read_options& how) override {
    std::vector<std::int64_t> rows;
    std::vector<augmentation> augment;
    for (const auto position : positions) {
      if (position < 0 || position >= samples.size())
        throw std::out_of_range(fmt::format("row {} is requested, but the job has {} rows", position, samples.size()));
      rows.push_back((*samples.rows)[static_cast<std::size_t>(position)]);
      if (how.augment != augmentation_kind::none)
        augment.push_back(draw_augmentation(how.augment, how.stream, how.epoch, position));
    }
    const auto [channels, height, width] = samples.source->shape();
    auto out = at::empty({std::ssize(rows), channels, height, width}, at::device(images_.device()).dtype(at::kFloat));
    images_.gather_into(out, samples.source, rows, augment);
    return out;
  }

private:
  image_store& images_;
};

/// Copies of tensor handles. Calling requires_grad_() on a copy does not affect other holders.
tensor_map handles_of(const tensor_map* tensors, const at::Device& device) {
  tensor_map copy;
  if (tensors)
    for (const auto& [name, value] : *tensors)
      copy.put(name, value.to(device).detach());
  return copy;
}

/// Detached contiguous values, without the memory of a larger tensor that contains them.
at::Tensor frozen(const at::Tensor& value) {
  auto plain = value.detach().contiguous();
  return plain.storage().nbytes() > plain.nbytes() ? plain.clone() : plain;
}

void check_values(const std::string& name, const at::Tensor& value) {
  if (!value.is_floating_point())
    return;
  const auto finite = value.isfinite().sum().item<std::int64_t>();
  if (finite < value.numel())
    throw std::runtime_error(fmt::format(
        "'{}' has {} values of {} that are not finite; a smaller step or a lower bound on divisors may help", name,
        value.numel() - finite, value.numel()));
}

std::string names_of(const named_tensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, value] : tensors)
    names.push_back("'" + name + "'");
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

tensors_ref checked_outcome(const program_job& job, const named_tensors& tensors) {
  const auto promised = job.body->outcome(job);
  auto out = std::make_shared<tensor_map>();
  for (const auto& promise : promised) {
    const auto at = tensors.find(promise.name);
    if (at == tensors.end())
      throw std::runtime_error(fmt::format("'{}' is missing: its outcome() declares it, and it returned {}",
                                           promise.name, names_of(tensors)));
    const auto& tensor = at->second;
    if (!tensor.defined())
      throw std::runtime_error(fmt::format("'{}' is an undefined tensor", promise.name));
    if (tensor.sizes() != at::IntArrayRef(promise.shape))
      throw std::runtime_error(fmt::format("'{}' has the shape [{}], but its outcome() declares [{}]", promise.name,
                                           fmt::join(tensor.sizes(), ", "), fmt::join(promise.shape, ", ")));
    if (tensor.scalar_type() != promise.type)
      throw std::runtime_error(fmt::format("'{}' is of type {}, but its outcome() declares {}", promise.name,
                                           c10::toString(tensor.scalar_type()), c10::toString(promise.type)));
    check_values(promise.name, tensor);
    out->put(promise.name, frozen(tensor));
  }
  if (tensors.size() > promised.size())
    throw std::runtime_error(
        fmt::format("it returned {}, but its outcome() declares {} of them", names_of(tensors), promised.size()));
  return out;
}

tensor_map checked_state(const named_tensors& tensors) {
  if (tensors.empty())
    throw std::runtime_error("a slice that is not the last one left no state for the next");
  tensor_map state;
  for (const auto& [name, value] : tensors) {
    if (!value.defined())
      throw std::runtime_error(fmt::format("'{}' of its state is an undefined tensor", name));
    state.put(name, frozen(value));
  }
  return state;
}

/// Detects writes into the input tensors of calls, by autograd's version counters.
class written_inputs {
public:
  explicit written_inputs(const std::vector<program_call>& calls) : calls_(calls), versions_(versions()) {}
  void expect_none() const {
    if (versions() != versions_)
      throw std::runtime_error("it writes into an input tensor, which is shared; write into a clone() instead");
  }

private:
  [[nodiscard]] std::vector<std::int64_t> versions() const {
    std::vector<std::int64_t> sizes;
    for (const auto& call : calls_)
      for (const auto* tensors : {&call.in, &call.state})
        for (const auto& [name, value] : *tensors)
          sizes.push_back(value.is_inference() ? 0 : value._version());
    return sizes;
  }

  const std::vector<program_call>& calls_;
  std::vector<std::int64_t> versions_;
};

/// A job and its current call.
struct running_call {
  const program_job* job = nullptr;
  program_call call{};
  double progress = 0.0;
  bool is_over = false;
  std::optional<digest128> content{}; ///< Set if the job has a state in the store.
};

/// Runs several jobs slice by slice, together.
class running_batch {
public:
  running_batch(std::span<const job> batch, image_store& images, slice_store* slices, outcome_store* kept)
      : reader_(images), slices_(slices), kept_(kept), results_(batch.size(), job_outcome{std::string{}}) {
    for (const auto& queued : batch) {
      const auto& job = std::get<program_job>(queued.request);
      running_.push_back({.job = &job,
                          .call = {.in = handles_of(job.in.get(), images.device()),
                                   .samples = job.samples,
                                   .stream = job.stream,
                                   .reader = &reader_}});
      if (auto reason = validate_rows(job.samples); !reason.empty()) {
        results_[running_.size() - 1] = fmt::format("program '{}': {}", job.body->name(), reason);
        end(running_.back());
        continue;
      }
      if (kept_)
        if (const auto kept = kept_->find(job)) {
          results_[running_.size() - 1] = work_output{program_output{.out = kept}};
          end(running_.back());
          continue;
        }
      if (slices && images.device().is_cpu() && slices->holds_any())
        resume_from_store(running_.back());
    }
  }

  outcomes run(slice_monitor* monitor) {
    const auto name = running_.front().job->body->name();
    for (auto next = next_calls(); !next.empty(); next = next_calls()) {
      if (monitor && !monitor->should_continue(name, progress())) {
        for (std::size_t i = 0; i < running_.size(); ++i)
          if (!running_[i].is_over)
            results_[i] = std::string(interrupted_text);
        break;
      }
      run_slice(next);
    }
    return std::move(results_);
  }

private:
  void resume_from_store(running_call& running) const {
    const auto content = slice_store::content_of(*running.job);
    const auto slice = slices_->find(content);
    if (!slice)
      return;
    running.content = content;
    running.call.slice = slice->slices;
    running.call.state = handles_of(&slice->state, reader_.device());
  }

  /// Calls with the lowest slice number. The other calls were resumed from the store at a later slice, and run after
  /// these.
  [[nodiscard]] std::vector<std::size_t> next_calls() const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].is_over)
        continue;
      if (!chosen.empty() && running_[i].call.slice < running_[chosen[0]].call.slice)
        chosen.clear();
      if (chosen.empty() || running_[i].call.slice == running_[chosen[0]].call.slice)
        chosen.push_back(i);
    }
    return chosen;
  }
  /// Progress of the slowest call.
  [[nodiscard]] double progress() const {
    double least = 1.0;
    for (const auto& running : running_)
      least = running.is_over ? least : std::min(least, running.progress);
    return least;
  }

  /// Runs the next slice of the calls in `chosen` together. If that fails, runs them one by one.
  void run_slice(const std::vector<std::size_t>& chosen) {
    std::vector<program_call> calls; // this copies handles only
    for (const auto i : chosen)
      calls.push_back(running_[i].call);
    std::vector<slice_result> steps;
    const auto failure = exception_message_of([&] {
      const written_inputs check(calls);
      steps = running_.front().job->body->run(calls);
      if (steps.size() != chosen.size())
        throw std::runtime_error(fmt::format("it returned outcomes for {} of {} calls", steps.size(), chosen.size()));
      check.expect_none();
    });
    if (!failure.empty() && chosen.size() > 1) {
      for (const auto i : chosen)
        run_slice({i});
      return;
    }
    for (std::size_t k = 0; k < chosen.size(); ++k)
      if (const auto reason = !failure.empty() ? failure : exception_message_of([&] { settle(chosen[k], steps[k]); });
          !reason.empty()) {
        results_[chosen[k]] = fmt::format("program '{}': {}", running_[chosen[k]].job->body->name(), reason);
        end(running_[chosen[k]]);
      }
  }

  void settle(std::size_t i, slice_result& step) {
    auto& running = running_[i];
    if (step.finished) {
      const auto out = checked_outcome(*running.job, step.tensors);
      if (kept_ && running.call.slice > 0)
        keep(*running.job, *out);
      results_[i] = work_output{program_output{.out = out}};
      return end(running);
    }
    running.call.state = checked_state(step.tensors);
    running.progress = step.progress;
    ++running.call.slice;
    if (!slices_)
      return;
    if (!running.content)
      running.content = slice_store::content_of(*running.job);
    slices_->put(*running.content, {.slices = running.call.slice, .state = running.call.state});
  }

  /// Stores an outcome. If the folder is not writable, a later run computes the outcome again, and this run is
  /// unaffected.
  void keep(const program_job& job, const tensor_map& out) {
    if (!system_error_of([&] { kept_->put(job, out); }).empty())
      kept_ = nullptr;
  }

  void end(running_call& running) {
    running.is_over = true;
    running.call = {};
    if (running.content)
      slices_->erase(*running.content);
  }

  image_reader reader_;
  slice_store* slices_;
  outcome_store* kept_; // null: outcomes are not stored
  std::vector<running_call> running_;
  outcomes results_;
};

} // namespace

outcomes run_programs(std::span<const job> batch, image_store& images, slice_store* slices, slice_monitor* monitor,
                      outcome_store* kept) {
  MNEME_CHECK(!batch.empty());
  const autograd_on tracking;
  const bool keeps = kept && kept->is_open() && images.device().is_cpu();
  return running_batch(batch, images, slices, keeps ? kept : nullptr).run(monitor);
}

} // namespace mneme

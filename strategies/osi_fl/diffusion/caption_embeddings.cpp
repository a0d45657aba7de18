#include "strategies/osi_fl/diffusion/caption_embeddings.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
namespace mneme {
namespace {

constexpr std::int64_t rows_of_slice = 16; // limit per job; 16 rows take seconds with the paper's captioner on a CPU

/// Base program: captions and encodes a few rows of every job per slice.
class describing : public program {
public:
  describing(std::shared_ptr<const captioner> by, pixel_normalization pixels)
      : by_(std::move(by)), pixels_(std::move(pixels)) {}

  [[nodiscard]] std::int64_t stacked_bytes(const program_job& job) const override {
    return std::min(rows_of_slice, std::max<std::int64_t>(job.samples.size(), 1)) * by_->input_bytes();
  }
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    std::vector<at::Tensor> images;
    for (const auto& call : calls)
      if (const auto places = places_of(call); !places.empty())
        images.push_back(pixels_.pixels_of(call.images(places)));
    const auto embeddings = images.empty() ? at::Tensor{} : by_->embeddings(at::cat(images)).cpu();
    std::vector<slice_result> steps;
    std::int64_t first = 0;
    for (const auto& call : calls) {
      const auto places = places_of(call);
      const auto own = places.empty() ? at::zeros({0, width()}) : embeddings.narrow(0, first, std::ssize(places));
      first += std::ssize(places);
      const bool finished = (call.slice + 1) * rows_of_slice >= call.samples.size();
      steps.push_back({.tensors = added(call, places, own, finished),
                       .finished = finished,
                       .progress = finished ? 1.0
                                            : static_cast<double>((call.slice + 1) * rows_of_slice) /
                                                  static_cast<double>(call.samples.size())});
    }
    return steps;
  }

protected:
  [[nodiscard]] std::int64_t width() const { return by_->embedding_width(); }
  [[nodiscard]] std::string own_identity() const {
    return fmt::format("{} {} {}", by_->identity(), fmt::join(pixels_.scale, ","), fmt::join(pixels_.shift, ","));
  }
  /// Adds embeddings [places, E] (on the host) of some rows to the state. Returns the new state, or the result if
  /// `finished`.
  [[nodiscard]] virtual named_tensors added(const program_call& call, const std::vector<std::int64_t>& places,
                                            const at::Tensor& embeddings, bool finished) const = 0;

private:
  [[nodiscard]] static std::vector<std::int64_t> places_of(const program_call& call) {
    const auto first = call.slice * rows_of_slice;
    const auto count = std::clamp<std::int64_t>(call.samples.size() - first, 0, rows_of_slice);
    std::vector<std::int64_t> places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), first);
    return places;
  }

  std::shared_ptr<const captioner> by_;
  pixel_normalization pixels_;
};

class describe_classes final : public describing {
public:
  describe_classes(std::shared_ptr<const captioner> by, pixel_normalization pixels, std::int64_t classes)
      : describing(std::move(by), std::move(pixels)), classes_(classes) {}
  [[nodiscard]] std::string name() const override { return "class means of captions"; }
  [[nodiscard]] std::string identity() const override { return fmt::format("{} {}", own_identity(), classes_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "means", .shape = {classes_, width()}},
            {.name = "counts", .shape = {classes_}, .type = at::kLong}};
  }

protected:
  [[nodiscard]] named_tensors added(const program_call& call, const std::vector<std::int64_t>& places,
                                    const at::Tensor& embeddings, bool finished) const override {
    const bool first = call.slice == 0;
    auto sums = first ? at::zeros({classes_, width()}, at::kDouble) : call.state.at("sums").cpu().clone();
    auto counts = first ? at::zeros({classes_}, at::kLong) : call.state.at("counts").cpu().clone();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto row = (*call.samples.rows)[static_cast<std::size_t>(places[i])];
      const auto label = call.samples.source->label(row);
      sums[label] += embeddings[static_cast<std::int64_t>(i)].to(at::kDouble);
      counts[label] += 1;
    }
    if (!finished)
      return {{"sums", sums}, {"counts", counts}};
    const auto means = sums / counts.clamp_min(1).to(at::kDouble).unsqueeze(1);
    return {{"means", means.to(at::kFloat).to(call.device())}, {"counts", counts.to(call.device())}};
  }

private:
  std::int64_t classes_;
};

class describe_rows final : public describing {
public:
  using describing::describing;
  [[nodiscard]] std::string name() const override { return "captions of rows"; }
  [[nodiscard]] std::string identity() const override { return own_identity(); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    return {{.name = "embeddings", .shape = {job.samples.size(), width()}}};
  }

protected:
  [[nodiscard]] named_tensors added(const program_call& call, const std::vector<std::int64_t>&,
                                    const at::Tensor& embeddings, bool) const override {
    const auto whole = call.slice == 0 ? embeddings : at::cat({call.state.at("embeddings").cpu(), embeddings});
    return {{"embeddings", whole.to(call.device())}};
  }
};

} // namespace

program_ref encode_class_means(std::shared_ptr<const captioner> by, pixel_normalization pixels, std::int64_t classes) {
  return std::make_shared<const describe_classes>(std::move(by), std::move(pixels), classes);
}
program_ref caption_embeddings(std::shared_ptr<const captioner> by, pixel_normalization pixels) {
  return std::make_shared<const describe_rows>(std::move(by), std::move(pixels));
}

} // namespace mneme

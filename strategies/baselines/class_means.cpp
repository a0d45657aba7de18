#include "strategies/baselines/class_means.hpp"
#include <ATen/ATen.h>
#include <numeric>
namespace mneme {
namespace {

constexpr std::int64_t class_rows_at_once = 128;
constexpr double length_added = 1e-8;

class feature_sums final : public looped_program {
public:
  feature_sums(model_ref net, std::int64_t classes, bool mirrored)
      : net_(std::move(net)), classes_(classes), mirrored_(mirrored) {}
  std::string name() const override { return "class means"; }
  std::string identity() const override {
    return net_->identity() + (mirrored_ ? " mirrored " : " plain ") + std::to_string(classes_);
  }
  std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = class_sums_name, .shape = {classes_, net_->feature_width()}},
            {.name = class_counts_name, .shape = {classes_}}};
  }

protected:
  slice_result run_call(const program_call& call) const override {
    const auto weights = call.in.at(flat_weights).unsqueeze(0); // [1, P]
    const auto labels = call.labels();
    auto sums = at::zeros({classes_, net_->feature_width()}, weights.options());
    for (std::int64_t first = 0; first < labels.numel(); first += class_rows_at_once) {
      std::vector<std::int64_t> places(static_cast<std::size_t>(std::min(class_rows_at_once, labels.numel() - first)));
      std::iota(places.begin(), places.end(), first);
      const auto images = call.images(places);
      auto directions = unit_features(weights, images);
      if (mirrored_)
        directions = directions + unit_features(weights, images.flip({3}));
      sums.index_add_(0, labels.narrow(0, first, std::ssize(places)), directions);
    }
    const auto counts = at::bincount(labels, {}, classes_).to(at::kFloat);
    return {.tensors = {{class_sums_name, sums}, {class_counts_name, counts}}};
  }

private:
  at::Tensor unit_features(const at::Tensor& weights, const at::Tensor& images) const {
    const auto x = net_->forward(weights, images.contiguous().unsqueeze(0), {}, nullptr).features[0]; // [n, D]
    return x / (x.norm(2, {1}, true) + length_added);
  }

  model_ref net_;
  std::int64_t classes_;
  bool mirrored_;
};

} // namespace

program_ref unit_feature_sums(model_ref net, std::int64_t classes, bool mirrored) {
  return std::make_shared<feature_sums>(std::move(net), classes, mirrored);
}

void class_mean_sums::add(const tensor_map& upload) {
  const auto* const sums = upload.find(class_sums_name);
  if (!sums)
    return;
  const auto more = sums->cpu().to(at::kDouble), counted = upload.at(class_counts_name).cpu().to(at::kDouble);
  sums_ = sums_.defined() ? sums_ + more : more;
  counts_ = counts_.defined() ? counts_ + counted : counted;
}

void class_mean_sums::update() {
  if (!sums_.defined())
    return;
  const auto unit_means = (sums_ / sums_.norm(2, {1}, true).clamp_min(1e-300)).to(at::kFloat);
  const auto sent = (counts_ > 0).unsqueeze(1);
  means_ = at::where(sent, unit_means, means_.defined() ? means_ : at::zeros_like(unit_means)).contiguous();
  sums_ = counts_ = at::Tensor();
}

} // namespace mneme

#include "strategies/lga/gradient_inversion.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "strategies/lga/encoder_distance.hpp"
#include "strategies/lga/lbfgs.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

// -- images from gradients --------------------------------------------------------------------------------------------

constexpr std::int64_t steps_of_slice = 5, restarts_max = 3;

/// One image that is being found. Its numbers never depend on those beside it.
struct sought_image {
  lbfgs optimizer{};
  at::Tensor label{};                // [1] int64
  std::vector<at::Tensor> targets{}; // the eight gradients
  std::vector<at::Tensor> kept{};    // the last iterates, [C H W]
  std::int64_t steps = 0, restarts = 0;
  double first = -1.0, last = -1.0; // the objective; -1: not known
  std::int64_t steps_to_go = 0;     // in this slice

  [[nodiscard]] bool failed() const { return restarts > restarts_max; }
};

class inversion final : public program {
public:
  inversion(const gradient_encoder& encoder, const inversion_options& with) : encoder_(encoder), with_(with) {}

  [[nodiscard]] std::string name() const override { return "inversion"; }
  [[nodiscard]] std::string identity() const override {
    const auto [channels, height, width] = encoder_.image();
    return fmt::format("{}x{}x{} {} {} {} {} {}", channels, height, width, encoder_.classes(), with_.steps,
                       with_.learning_rate, with_.kept, with_.by_hand_on_cpus);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = encoder_.image();
    return {{.name = "images", .shape = {with_.kept, channels, height, width}, .type = at::kByte},
            {.name = "label", .shape = {1}, .type = at::kLong},
            {.name = "objective", .shape = {2}, .type = at::kDouble}};
  }
  /// The columns of three convolutions and what their gradients need: a CPU takes one image at a time, a device many.
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override { return std::int64_t{1} << 20; }

  [[nodiscard]] std::vector<program_step> run(std::span<const program_call> calls) const override {
    std::vector<sought_image> sought;
    for (const auto& call : calls)
      sought.push_back(opened(call));
    if (with_.by_hand_on_cpus && calls.front().device().is_cpu())
      descend_by_hand(calls, sought);
    for (;;) {
      std::vector<std::size_t> active;
      for (std::size_t i = 0; i < sought.size(); ++i)
        if (sought[i].steps_to_go > 0)
          active.push_back(i);
      if (active.empty())
        break;
      evaluate(calls, sought, active);
    }
    std::vector<program_step> steps;
    for (const auto& found : sought)
      steps.push_back(closed(found));
    return steps;
  }

private:
  [[nodiscard]] at::Tensor noise(const program_call& call, std::int64_t attempt) const {
    const auto [channels, height, width] = encoder_.image();
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(attempt);
    rng_stream stream(key);
    auto values = at::empty({channels * height * width}, at::kFloat);
    for (auto* at = values.mutable_data_ptr<float>();
         auto& value : std::span(at, static_cast<std::size_t>(values.numel())))
      value = static_cast<float>(stream.normal());
    return values.to(call.device());
  }

  [[nodiscard]] sought_image opened(const program_call& call) const {
    sought_image found;
    for (const auto& tensor : encoder_.tensors())
      found.targets.push_back(call.in.at(tensor.name));
    found.label = at::tensor(label_of_gradients(found.targets[6]), at::kLong).view({1}).to(call.device());
    found.steps_to_go = steps_of_slice;
    if (call.slice == 0) {
      found.optimizer = lbfgs(noise(call, 0), with_.learning_rate);
      found.steps_to_go = std::min(found.steps_to_go, with_.steps);
      return found;
    }
    std::map<std::string, at::Tensor> saved;
    for (const auto& [name, value] : call.state)
      saved[name] = value;
    found.optimizer.load(saved);
    if (saved.contains("kept"))
      found.kept = saved.at("kept").unbind(0);
    const auto counts = saved.at("counts").cpu();
    const auto* const at = counts.const_data_ptr<double>();
    found.steps = static_cast<std::int64_t>(at[0]);
    found.restarts = static_cast<std::int64_t>(at[1]);
    found.first = at[2], found.last = at[3];
    found.steps_to_go = std::min(found.steps_to_go, with_.steps - found.steps);
    return found;
  }

  /// Image after image: the history of each, two megabytes, stays in the caches as long as it is needed.
  void descend_by_hand(std::span<const program_call> calls, std::vector<sought_image>& sought) const {
    encoder_distance distance(encoder_, calls.front().in.at("encoder"));
    for (std::size_t i = 0; i < sought.size(); ++i) {
      auto& found = sought[i];
      const auto sent = sent_by(found.targets, found.label.item<std::int64_t>());
      while (found.steps_to_go > 0) {
        const auto slope = at::empty_like(found.optimizer.x());
        const double value = distance.value_and_slope(found.optimizer.x().const_data_ptr<float>(), sent,
                                                      slope.mutable_data_ptr<float>());
        tell(calls[i], found, value, slope);
      }
    }
  }

  /// The objective at all active images, in one stack: sum of squared differences between gradients.
  void evaluate(std::span<const program_call> calls, std::vector<sought_image>& sought,
                const std::vector<std::size_t>& active) const {
    const auto [channels, height, width] = encoder_.image();
    std::vector<at::Tensor> places, labels;
    for (const auto i : active) {
      places.push_back(sought[i].optimizer.x());
      labels.push_back(sought[i].label);
    }
    const auto x = leaf_of(at::stack(places));
    const auto images = x.view({x.size(0), channels, height, width});
    const auto found = encoder_.gradients(calls.front().in.at("encoder"), images, at::cat(labels));
    auto objective = at::zeros({x.size(0)}, x.options());
    for (std::size_t g = 0; g < found.size(); ++g) {
      std::vector<at::Tensor> wanted;
      for (const auto i : active)
        wanted.push_back(sought[i].targets[g]);
      objective = objective + (found[g] - at::stack(wanted).view_as(found[g])).square().flatten(1).sum(1);
    }
    const auto slope = gradients_of(objective, {x}).front();
    const auto values = objective.detach().cpu().to(at::kDouble);
    for (std::size_t k = 0; k < active.size(); ++k)
      tell(calls[active[k]], sought[active[k]], values[static_cast<std::int64_t>(k)].item<double>(),
           slope[static_cast<std::int64_t>(k)].clone());
  }

  void tell(const program_call& call, sought_image& found, double value, const at::Tensor& slope) const {
    if (!std::isfinite(value) || !at::isfinite(slope).all().item<bool>())
      return restart(call, found);
    if (found.first < 0.0)
      found.first = value;
    found.last = value;
    if (found.optimizer.tell(value, slope))
      return;
    ++found.steps;
    --found.steps_to_go;
    if (found.steps > with_.steps - with_.kept)
      found.kept.push_back(found.optimizer.x());
  }

  void restart(const program_call& call, sought_image& found) const {
    found.steps = 0;
    found.kept.clear();
    found.last = -1.0;
    if (++found.restarts > restarts_max) {
      found.steps_to_go = 0;
      return;
    }
    found.optimizer = lbfgs(noise(call, found.restarts), with_.learning_rate);
  }

  /// Values outside [0, 1] are clamped: as released they wrap around, which makes other images of them.
  [[nodiscard]] program_step closed(const sought_image& found) const {
    const auto [channels, height, width] = encoder_.image();
    if (found.failed() || found.steps == with_.steps) {
      const std::vector<std::int64_t> shape{with_.kept, channels, height, width};
      const auto images = found.failed() ? at::zeros(shape, found.label.options().dtype(at::kByte))
                                         : (at::stack(found.kept).clamp(0.0, 1.0) * 255.0).to(at::kByte).view(shape);
      return {.tensors = {{"images", images},
                          {"label", found.label},
                          {"objective", at::tensor(std::vector<double>{found.first, found.failed() ? -1.0 : found.last},
                                                   at::kDouble)}}};
    }
    program_step step{.tensors = found.optimizer.save(),
                      .finished = false,
                      .progress = static_cast<double>(found.steps) / static_cast<double>(with_.steps)};
    if (!found.kept.empty())
      step.tensors["kept"] = at::stack(found.kept);
    step.tensors["counts"] =
        at::tensor(std::vector<double>{static_cast<double>(found.steps), static_cast<double>(found.restarts),
                                       found.first, found.last},
                   at::kDouble);
    return step;
  }

  gradient_encoder encoder_;
  inversion_options with_;
};

// -- gradients from prototypes ----------------------------------------------------------------------------------------

constexpr int perturbation_steps = 50;
constexpr double perturbation_rate = 0.2, perturbation_decay = 1e-5;

class prototypes final : public looped_program {
public:
  prototypes(model_ref net, const gradient_encoder& encoder, bool perturbed)
      : net_(std::move(net)), encoder_(encoder), perturbed_(perturbed) {}

  [[nodiscard]] std::string name() const override { return "prototypes"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {}", net_->identity(), encoder_.classes(), perturbed_);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    auto made = encoder_.tensors();
    for (auto& tensor : made)
      tensor.shape.insert(tensor.shape.begin(), job.samples.size());
    return made;
  }

protected:
  [[nodiscard]] program_step run_call(const program_call& call) const override {
    const auto labels = call.labels();
    auto images = pixels(call);
    if (perturbed_)
      images = moved(call, images, labels);
    const auto found = encoder_.gradients(call.in.at("encoder"), images, labels);
    program_step step;
    for (std::size_t g = 0; g < found.size(); ++g)
      step.tensors[encoder_.tensors()[g].name] = found[g];
    return step;
  }

private:
  /// The rows in [0, 1], as the released programs optimise and encode them: not normalised.
  [[nodiscard]] static at::Tensor pixels(const program_call& call) {
    std::vector<std::int64_t> every(static_cast<std::size_t>(call.samples.size()));
    for (std::size_t i = 0; i < every.size(); ++i)
      every[i] = static_cast<std::int64_t>(i);
    const auto shown = call.images(every);
    const auto& source = *call.samples.source;
    if (source.vectors.defined())
      return shown;
    const auto channels = static_cast<std::int64_t>(source.scale.size());
    const auto scale = at::tensor(source.scale, at::kFloat).view({1, channels, 1, 1}).to(call.device());
    const auto shift = at::tensor(source.shift, at::kFloat).view({1, channels, 1, 1}).to(call.device());
    return (shown - shift) / scale / 255.0;
  }

  [[nodiscard]] at::Tensor moved(const program_call& call, at::Tensor images, const at::Tensor& labels) const {
    const auto seen = call.in.at("seen").item<std::int64_t>();
    const auto weights = call.in.at("weights").unsqueeze(0);
    const auto targets = at::zeros({images.size(0), seen}, images.options()).scatter_(1, labels.unsqueeze(1), 1.0);
    for (int step = 0; step < perturbation_steps; ++step) {
      const auto x = leaf_of(images);
      const auto logits = net_->differentiable(weights, x.unsqueeze(0), {0, seen}, {}).logits[0];
      const auto loss = (at::softplus(logits) - logits * targets).mean(1).sum(); // rows do not touch each other
      const auto slope = gradients_of(loss, {x}).front();
      images = images - perturbation_rate * (slope + perturbation_decay * images);
    }
    return images;
  }

  model_ref net_;
  gradient_encoder encoder_;
  bool perturbed_;
};

} // namespace

program_ref inversion_program(const gradient_encoder& encoder, const inversion_options& with) {
  return std::make_shared<inversion>(encoder, with);
}

program_ref prototype_program(model_ref net, const gradient_encoder& encoder, bool perturbed) {
  return std::make_shared<prototypes>(std::move(net), encoder, perturbed);
}

} // namespace mneme

#include "strategies/lga/gradient_inversion.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {

// -- L-BFGS -----------------------------------------------------------------------------------------------------------

namespace {

constexpr std::int64_t iterations_max = 20, evaluations_max = 25;
constexpr std::size_t history_max = 100;
constexpr double gradient_tolerance = 1e-7, change_tolerance = 1e-9, curvature_min = 1e-10;

// On a CPU, loops replace operators. A step reads up to two hundred history vectors twice, so the overhead of operator
// calls would dominate.

double product_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu())
    return at::dot(a, b).item<double>();
  double sum = 0.0;
  kernels::add_products(sum, a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.numel());
  return sum;
}

/// to += factor * direction.
void add_scaled(at::Tensor& to, const at::Tensor& direction, double factor) {
  if (!to.is_cpu()) {
    to.add_(direction, factor);
    return;
  }
  auto* const values = to.mutable_data_ptr<float>();
  const auto size = to.numel();
  const auto scale = static_cast<float>(factor);
  kernels::multiply(
      {.a = &scale, .b = direction.const_data_ptr<float>(), .before = values, .c = values, .m = 1, .n = size, .k = 1});
}

double largest(const at::Tensor& values) { return values.abs().max().item<double>(); }

} // namespace

/// Two-loop recursion (Nocedal 1980). Adds the newest pair to the history if its curvature is large enough.
at::Tensor lbfgs::direction(const at::Tensor& gradient) {
  const auto change = gradient - gradient_before_, move = direction_ * length_;
  if (const auto curvature = product_of(change, move); curvature > curvature_min) {
    if (changes_.size() == history_max) {
      changes_.erase(changes_.begin());
      moves_.erase(moves_.begin());
      inverses_.erase(inverses_.begin());
    }
    changes_.push_back(change);
    moves_.push_back(move);
    inverses_.push_back(1.0 / curvature);
    scale_ = curvature / product_of(change, change);
  }
  std::vector<double> shares(changes_.size());
  auto along = -gradient;
  for (auto i = changes_.size(); i-- > 0;) {
    shares[i] = product_of(moves_[i], along) * inverses_[i];
    add_scaled(along, changes_[i], -shares[i]);
  }
  along.mul_(scale_);
  for (std::size_t i = 0; i < changes_.size(); ++i)
    add_scaled(along, moves_[i], shares[i] - product_of(changes_[i], along) * inverses_[i]);
  return along;
}

bool lbfgs::advance_step(double value, const at::Tensor& gradient) {
  const bool begins = evaluations_ == 0;
  const auto ends = [&] {
    evaluations_ = iterations_of_step_ = 0;
    return false;
  };
  ++evaluations_;
  const bool is_flat = largest(gradient) <= gradient_tolerance;
  if (begins && is_flat)
    return ends();
  if (!begins && (evaluations_ >= evaluations_max || is_flat || largest(direction_ * length_) <= change_tolerance ||
                  std::abs(value - value_before_) < change_tolerance))
    return ends();

  ++iterations_of_step_;
  if (++iterations_ == 1)
    direction_ = -gradient;
  else
    direction_ = direction(gradient);
  gradient_before_ = gradient.clone();
  value_before_ = value;
  length_ = iterations_ == 1 ? std::min(1.0, 1.0 / gradient.abs().sum().item<double>()) * rate_ : rate_;
  if (product_of(gradient, direction_) > -change_tolerance)
    return ends();
  x_ = x_ + direction_ * length_;
  return iterations_of_step_ == iterations_max ? ends() : true; // the next step evaluates the last point of this step
}

std::map<std::string, at::Tensor> lbfgs::save() const {
  std::map<std::string, at::Tensor> saved{{"x", x_}};
  if (direction_.defined()) {
    saved["direction"] = direction_;
    saved["gradient"] = gradient_before_;
  }
  if (!changes_.empty()) {
    saved["changes"] = at::stack(changes_);
    saved["moves"] = at::stack(moves_);
    saved["inverses"] = at::tensor(inverses_, at::kDouble);
  }
  saved["rate"] = at::tensor(rate_, at::kDouble);
  saved["length"] = at::tensor(length_, at::kDouble);
  saved["scale"] = at::tensor(scale_, at::kDouble);
  saved["value"] = at::tensor(value_before_, at::kDouble);
  saved["iterations"] = at::tensor(iterations_, at::kLong);
  saved["iterations_of_step"] = at::tensor(iterations_of_step_, at::kLong);
  saved["evaluations"] = at::tensor(evaluations_, at::kLong);
  return saved;
}

void lbfgs::load(const std::map<std::string, at::Tensor>& saved) {
  x_ = saved.at("x");
  if (saved.contains("direction")) {
    direction_ = saved.at("direction");
    gradient_before_ = saved.at("gradient");
  }
  if (saved.contains("changes")) {
    changes_ = saved.at("changes").unbind(0);
    moves_ = saved.at("moves").unbind(0);
    const auto inverses = saved.at("inverses").cpu();
    inverses_.assign(inverses.const_data_ptr<double>(), inverses.const_data_ptr<double>() + inverses.numel());
  }
  rate_ = saved.at("rate").item<double>();
  length_ = saved.at("length").item<double>();
  scale_ = saved.at("scale").item<double>();
  value_before_ = saved.at("value").item<double>();
  iterations_ = saved.at("iterations").item<std::int64_t>();
  iterations_of_step_ = saved.at("iterations_of_step").item<std::int64_t>();
  evaluations_ = saved.at("evaluations").item<std::int64_t>();
}

namespace {

// -- images from gradients --------------------------------------------------------------------------------------------

constexpr std::int64_t steps_of_slice = 5, restarts_max = 3;

/// An image under reconstruction. Its values do not depend on the other images of the job.
struct sought_image {
  lbfgs optimizer{};
  at::Tensor label{};                // [1] int64
  std::vector<at::Tensor> targets{}; // the eight gradients
  std::vector<at::Tensor> kept{};    // the last iterates, [C H W]
  std::int64_t steps = 0, restarts = 0;
  double first = -1.0, last = -1.0; // objective at the start, and now; -1: not evaluated
  std::int64_t steps_to_go = 0;     // number of steps left in this slice

  [[nodiscard]] bool failed() const { return restarts > restarts_max; }
};

class inversion final : public program {
public:
  inversion(const gradient_encoder& encoder, const inversion_options& options) : encoder_(encoder), options_(options) {}

  [[nodiscard]] std::string name() const override { return "inversion"; }
  [[nodiscard]] std::string identity() const override {
    const auto [channels, height, width] = encoder_.image();
    return fmt::format("{}x{}x{} {} {} {} {} {}", channels, height, width, encoder_.classes(), options_.steps,
                       options_.learning_rate, options_.kept, options_.by_hand_on_cpus);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = encoder_.image();
    return {{.name = "images", .shape = {options_.kept, channels, height, width}, .type = at::kByte},
            {.name = "label", .shape = {1}, .type = at::kLong},
            {.name = "objective", .shape = {2}, .type = at::kDouble}};
  }
  /// Memory per image for the columns of three convolutions and their gradients. A CPU processes one image at a time, a
  /// device many images.
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override { return std::int64_t{1} << 20; }

  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    std::vector<sought_image> sought;
    for (const auto& call : calls)
      sought.push_back(opened(call));
    if (options_.by_hand_on_cpus && calls.front().device().is_cpu())
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
    std::vector<slice_result> steps;
    for (const auto& image : sought)
      steps.push_back(closed(image));
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
    sought_image image;
    for (const auto& tensor : encoder_.tensors())
      image.targets.push_back(call.in.at(tensor.name));
    image.label = at::tensor(label_of_gradients(image.targets[6]), at::kLong).view({1}).to(call.device());
    image.steps_to_go = steps_of_slice;
    if (call.slice == 0) {
      image.optimizer = lbfgs(noise(call, 0), options_.learning_rate);
      image.steps_to_go = std::min(image.steps_to_go, options_.steps);
      return image;
    }
    std::map<std::string, at::Tensor> saved;
    for (const auto& [name, value] : call.state)
      saved[name] = value;
    image.optimizer.load(saved);
    if (saved.contains("kept"))
      image.kept = saved.at("kept").unbind(0);
    image.steps = saved.at("steps").item<std::int64_t>();
    image.restarts = saved.at("restarts").item<std::int64_t>();
    image.first = saved.at("first_objective").item<double>();
    image.last = saved.at("last_objective").item<double>();
    image.steps_to_go = std::min(image.steps_to_go, options_.steps - image.steps);
    return image;
  }

  /// Runs one image after another, because the L-BFGS history of an image (about 2 MB) then stays in the cache.
  void descend_by_hand(std::span<const program_call> calls, std::vector<sought_image>& sought) const {
    encoder_distance distance(encoder_, calls.front().in.at("encoder"));
    for (std::size_t i = 0; i < sought.size(); ++i) {
      auto& image = sought[i];
      const auto sent = sent_by(image.targets, image.label.item<std::int64_t>());
      while (image.steps_to_go > 0) {
        const auto slope = at::empty_like(image.optimizer.x());
        const double value = distance.value_and_gradient(image.optimizer.x().const_data_ptr<float>(), sent,
                                                         slope.mutable_data_ptr<float>());
        advance_step(calls[i], image, value, slope);
      }
    }
  }

  /// Evaluates the objective of all active images in one stack: the sum of squared differences between gradients.
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
    const auto gradients = encoder_.gradients(calls.front().in.at("encoder"), images, at::cat(labels));
    auto objective = at::zeros({x.size(0)}, x.options());
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      std::vector<at::Tensor> targets;
      for (const auto i : active)
        targets.push_back(sought[i].targets[g]);
      objective = objective + (gradients[g] - at::stack(targets).view_as(gradients[g])).square().flatten(1).sum(1);
    }
    const auto slope = gradients_of(objective, {x}).front();
    const auto values = objective.detach().cpu().to(at::kDouble);
    for (std::size_t k = 0; k < active.size(); ++k)
      advance_step(calls[active[k]], sought[active[k]], values[static_cast<std::int64_t>(k)].item<double>(),
                   slope[static_cast<std::int64_t>(k)].clone());
  }

  void advance_step(const program_call& call, sought_image& image, double value, const at::Tensor& slope) const {
    if (!std::isfinite(value) || !at::isfinite(slope).all().item<bool>())
      return restart(call, image);
    if (image.first < 0.0)
      image.first = value;
    image.last = value;
    if (image.optimizer.advance_step(value, slope))
      return;
    ++image.steps;
    --image.steps_to_go;
    if (image.steps > options_.steps - options_.kept)
      image.kept.push_back(image.optimizer.x());
  }

  void restart(const program_call& call, sought_image& image) const {
    image.steps = 0;
    image.kept.clear();
    image.last = -1.0;
    if (++image.restarts > restarts_max) {
      image.steps_to_go = 0;
      return;
    }
    image.optimizer = lbfgs(noise(call, image.restarts), options_.learning_rate);
  }

  /// Clamps pixels to [0, 1]. The official code lets them wrap around, which changes the images.
  [[nodiscard]] slice_result closed(const sought_image& image) const {
    const auto [channels, height, width] = encoder_.image();
    if (image.failed() || image.steps == options_.steps) {
      const std::vector<std::int64_t> shape{options_.kept, channels, height, width};
      const auto images = image.failed() ? at::zeros(shape, image.label.options().dtype(at::kByte))
                                         : (at::stack(image.kept).clamp(0.0, 1.0) * 255.0).to(at::kByte).view(shape);
      return {.tensors = {{"images", images},
                          {"label", image.label},
                          {"objective", at::tensor(std::vector<double>{image.first, image.failed() ? -1.0 : image.last},
                                                   at::kDouble)}}};
    }
    slice_result step{.tensors = image.optimizer.save(),
                      .finished = false,
                      .progress = static_cast<double>(image.steps) / static_cast<double>(options_.steps)};
    if (!image.kept.empty())
      step.tensors["kept"] = at::stack(image.kept);
    step.tensors["steps"] = at::tensor(image.steps, at::kLong);
    step.tensors["restarts"] = at::tensor(image.restarts, at::kLong);
    step.tensors["first_objective"] = at::tensor(image.first, at::kDouble);
    step.tensors["last_objective"] = at::tensor(image.last, at::kDouble);
    return step;
  }

  gradient_encoder encoder_;
  inversion_options options_;
};

// -- gradients from prototypes ----------------------------------------------------------------------------------------

constexpr int perturbation_steps = 50;
constexpr double pixel_rate = 0.2, pixel_decay = 1e-5, latent_rate = 1.0, latent_share = 0.1;

class prototypes final : public looped_program {
public:
  prototypes(model_ref net, const gradient_encoder& encoder, prototype_perturbation how)
      : net_(std::move(net)), encoder_(encoder), how_(how) {}

  [[nodiscard]] std::string name() const override { return "prototypes"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {}", net_->identity(), encoder_.classes(), static_cast<int>(how_));
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    auto gradients = encoder_.tensors();
    for (auto& tensor : gradients)
      tensor.shape.insert(tensor.shape.begin(), job.samples.size());
    return gradients;
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    const auto labels = call.labels();
    auto images = pixels(call);
    if (how_ == prototype_perturbation::pixels)
      images = moved(call, images, labels);
    else if (how_ == prototype_perturbation::latent)
      images = moved_against_noise(call, images, labels);
    const auto gradients = encoder_.gradients(call.in.at("encoder"), images, labels);
    slice_result step;
    for (std::size_t g = 0; g < gradients.size(); ++g)
      step.tensors[encoder_.tensors()[g].name] = gradients[g];
    return step;
  }

private:
  /// Pixels of the rows in [0, 1]. The official programs optimize and encode them without normalization.
  [[nodiscard]] static at::Tensor pixels(const program_call& call) {
    std::vector<std::int64_t> every(static_cast<std::size_t>(call.samples.size()));
    for (std::size_t i = 0; i < every.size(); ++i)
      every[i] = static_cast<std::int64_t>(i);
    const auto shown = call.images(every);
    const auto& source = *call.samples.source;
    if (source.vectors.defined())
      return shown;
    return (shown - by_channel(call, source.shift)) / by_channel(call, source.scale) / 255.0;
  }

  /// Values for each channel, as [1, C, 1, 1].
  [[nodiscard]] static at::Tensor by_channel(const program_call& call, const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).view({1, std::ssize(values), 1, 1}).to(call.device());
  }

  /// Normalizes pixels in [0, 1], as training does.
  [[nodiscard]] static at::Tensor normalized(const program_call& call, const at::Tensor& images) {
    const auto& source = *call.samples.source;
    if (source.vectors.defined())
      return images;
    return images * 255.0 * by_channel(call, source.scale) + by_channel(call, source.shift);
  }

  [[nodiscard]] at::Tensor moved(const program_call& call, at::Tensor images, const at::Tensor& labels) const {
    const auto classes = call.in.at("seen").item<std::int64_t>();
    const auto weights = call.in.at("weights").unsqueeze(0);
    const auto targets = at::zeros({images.size(0), classes}, images.options()).scatter_(1, labels.unsqueeze(1), 1.0);
    for (int step = 0; step < perturbation_steps; ++step) {
      const auto x = leaf_of(images);
      const auto logits = net_->differentiable(weights, x.unsqueeze(0), {0, classes}, {}).logits[0];
      const auto loss = (at::softplus(logits) - logits * targets).mean(1).sum(); // the gradients of different rows are
                                                                                 // independent
      const auto slope = gradients_of(loss, {x}).front();
      images = images - pixel_rate * (slope + pixel_decay * images);
    }
    return images;
  }

  /// Gradient descent on the cross-entropy of head(F(x) + 0.1 N(0, v)). The head is linear, so the noise is passed
  /// through its weights and added to the logits.
  [[nodiscard]] at::Tensor moved_against_noise(const program_call& call, at::Tensor images,
                                               const at::Tensor& labels) const {
    const auto classes = call.in.at("seen").item<std::int64_t>();
    const auto& flat = call.in.at("weights");
    const auto deviations = call.in.at("variances").cpu().to(at::kDouble).sqrt() * latent_share; // [rows, D]
    at::Tensor head;                                                                             // [classes, D]
    for (const auto& part : net_->layout())
      if (part.head && part.shape.size() == 2)
        head = as_in_files(flat, part).narrow(0, 0, classes).cpu().to(at::kDouble);
    rng_stream draw(call.stream);
    for (int step = 0; step < perturbation_steps; ++step) {
      auto noise = at::empty_like(deviations);
      auto* const values = noise.mutable_data_ptr<double>();
      for (std::int64_t i = 0; i < noise.numel(); ++i)
        values[i] = draw.normal();
      const auto added = at::mm(noise * deviations, head.t()).to(at::kFloat).to(call.device()); // [rows, classes]
      const auto x = leaf_of(images);
      const auto logits =
          net_->differentiable(flat.unsqueeze(0), normalized(call, x).unsqueeze(0), {0, classes}, {}).logits[0] + added;
      const auto loss = -at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).sum(); // the gradients of different
                                                                                          // rows are independent
      images = images - latent_rate * gradients_of(loss, {x}).front();
    }
    return images;
  }

  model_ref net_;
  gradient_encoder encoder_;
  prototype_perturbation how_;
};

} // namespace

program_ref inversion_program(const gradient_encoder& encoder, const inversion_options& options) {
  return std::make_shared<inversion>(encoder, options);
}

program_ref prototype_program(model_ref net, const gradient_encoder& encoder, prototype_perturbation moved) {
  return std::make_shared<prototypes>(std::move(net), encoder, moved);
}

} // namespace mneme

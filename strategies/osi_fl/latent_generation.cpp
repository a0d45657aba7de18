#include "strategies/osi_fl/latent_generation.hpp"
#include "runtime/base/check.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
namespace mneme {
namespace {

// -- images from conditions -------------------------------------------------------------------------------------------

class generate final : public program {
public:
  generate(const latent_shape& shape, const generation_settings& with)
      : shape_(shape), with_(with), encoder_(shape), sampler_(shape, with) {}

  [[nodiscard]] std::string name() const override { return "generation"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {} {} {}", shape_.identity(), with_.images, with_.candidates, with_.steps,
                       with_.guidance);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [C, H, W] = shape_.image;
    return {{.name = "images", .shape = {with_.images, C, H, W}, .type = at::kByte}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override {
    return drawn() * shape_.units * std::int64_t{sizeof(float)};
  }

  [[nodiscard]] std::vector<program_step> run(std::span<const program_call> calls) const override {
    std::vector<program_step> made;
    for (std::size_t first = 0; first < calls.size();) { // those that share their nets lie side by side
      auto last = first + 1;
      while (last < calls.size() && share_nets(calls[first], calls[last]))
        ++last;
      for (auto& images : images_of(calls.subspan(first, last - first)))
        made.push_back({.tensors = {{"images", std::move(images)}}});
      first = last;
    }
    return made;
  }

private:
  /// Images that are made for each condition, kept or not.
  [[nodiscard]] std::int64_t drawn() const { return with_.images * with_.candidates; }

  [[nodiscard]] static bool share_nets(const program_call& a, const program_call& b) {
    const auto is_shared = [&](const char* name) {
      return a.in.at(name).const_data_ptr() == b.in.at(name).const_data_ptr();
    };
    const bool one = a.in.find("encoder"), other = b.in.find("encoder");
    const bool moved = a.in.find(moment_tensors[0]), other_moved = b.in.find(moment_tensors[0]);
    return is_shared("denoiser") && is_shared("basis") && one == other && (!one || is_shared("encoder")) &&
           moved == other_moved && (!moved || is_shared(moment_tensors[0]));
  }

  [[nodiscard]] std::vector<at::Tensor> images_of(std::span<const program_call> calls) const {
    std::vector<at::Tensor> conditions, noise;
    for (const auto& call : calls) {
      conditions.push_back(call.in.at("condition").view({1, shape_.embedding}));
      noise.push_back(normal_numbers({drawn(), shape_.latent()}, call.stream).to(call.device()));
    }
    const auto& nets = calls.front().in;
    const image_components components(nets);
    auto latents = sampler_.latents(nets.at("denoiser"), at::stack(conditions), at::stack(noise));
    if (nets.find(moment_tensors.front()))
      latents = matched(nets, conditions, latents);
    const auto bytes = (components.pixels(latents) * 255.0).round().to(at::kByte);
    const auto [C, H, W] = shape_.image;
    std::vector<at::Tensor> images;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const auto made = bytes[static_cast<std::int64_t>(k)].reshape({drawn(), C, H, W});
      images.push_back(with_.candidates == 1 ? made.clone() : recognised(nets, components, conditions[k], made));
    }
    return images;
  }

  /// The kind that a condition [1, E] stands for.
  [[nodiscard]] std::int64_t kind_of(const tensor_map& nets, const at::Tensor& condition) const {
    return encoder_.logits(nets.at("encoder"), condition).argmax(1).item<std::int64_t>();
  }

  /// Latents [K, Z, L] with the moments of their kinds. Condition by condition: products of a stack would have other
  /// bits.
  [[nodiscard]] at::Tensor matched(const tensor_map& nets, const std::vector<at::Tensor>& conditions,
                                   const at::Tensor& latents) const {
    std::vector<at::Tensor> moved;
    for (std::size_t k = 0; k < conditions.size(); ++k) {
      const auto kind = kind_of(nets, conditions[k]);
      const moment_map to(nets.at(moment_tensors[0])[kind], nets.at(moment_tensors[1])[kind],
                          nets.at(moment_tensors[2])[kind]);
      moved.push_back(to.moved(latents[static_cast<std::int64_t>(k)]));
    }
    return at::stack(moved);
  }

  /// Those that the encoder takes for what the condition stands for, in their order; where they do not suffice, the
  /// likeliest others behind them. Call by call: convolutions of a stack would have other bits.
  [[nodiscard]] at::Tensor recognised(const tensor_map& nets, const image_components& components,
                                      const at::Tensor& condition, const at::Tensor& made) const {
    const auto& net = nets.at("encoder");
    const auto wanted = kind_of(nets, condition);
    const auto seen = encoder_.embeddings(net, components.normalised(made));
    const auto chances = at::softmax(encoder_.logits(net, seen), 1).detach();
    const auto right = (chances.argmax(1) == wanted).cpu();
    const auto likely = chances.select(1, wanted).contiguous().cpu();
    std::vector<std::int64_t> order(static_cast<std::size_t>(drawn()));
    std::iota(order.begin(), order.end(), 0);
    const auto* const is_right = right.const_data_ptr<bool>();
    const auto* const chance = likely.const_data_ptr<float>();
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return is_right[a] != is_right[b] ? is_right[a] : !is_right[a] && chance[a] > chance[b];
    });
    order.resize(static_cast<std::size_t>(with_.images));
    return made.index_select(0, at::tensor(order, at::kLong).to(made.device()));
  }

  latent_shape shape_;
  generation_settings with_;
  image_encoder encoder_;
  latent_sampler sampler_;
};

// -- conditions from rows ---------------------------------------------------------------------------------------------

class sum_up final : public looped_program {
public:
  sum_up(const latent_shape& shape, std::int64_t classes) : shape_(shape), classes_(classes), encoder_(shape) {}
  [[nodiscard]] std::string name() const override { return "class means"; }
  [[nodiscard]] std::string identity() const override { return fmt::format("{} {}", shape_.identity(), classes_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "means", .shape = {classes_, shape_.embedding}},
            {.name = "counts", .shape = {classes_}, .type = at::kLong}};
  }

protected:
  /// mu_k = sum of e_i over the rows of class k / their number, summed in float64 (OSI-FL, eq. 9).
  [[nodiscard]] program_step run_call(const program_call& call) const override {
    constexpr std::int64_t rows_at_once = 256;
    const auto labels = call.labels();
    auto sums = at::zeros({classes_, shape_.embedding}, labels.options().dtype(at::kDouble));
    auto counts = at::zeros({classes_}, labels.options());
    for (std::int64_t first = 0; first < call.samples.size(); first += rows_at_once) {
      const auto count = std::min(rows_at_once, call.samples.size() - first);
      std::vector<std::int64_t> where(static_cast<std::size_t>(count));
      std::iota(where.begin(), where.end(), first);
      const auto seen = encoder_.embeddings(call.in.at("encoder"), call.images(where)).detach().to(at::kDouble);
      // A product with one-hot rows: sums in one order on every device.
      const auto members = at::one_hot(labels.narrow(0, first, count), classes_);
      sums = sums + at::mm(members.to(at::kDouble).t(), seen);
      counts = counts + members.sum(0);
    }
    const auto divisors = counts.clamp_min(1).to(at::kDouble).unsqueeze(1);
    return {.tensors = {{"means", (sums / divisors).to(at::kFloat)}, {"counts", counts}}};
  }

private:
  latent_shape shape_;
  std::int64_t classes_;
  image_encoder encoder_;
};

} // namespace

program_ref latent_generation(const latent_shape& shape, const generation_settings& with) {
  return std::make_shared<const generate>(shape, with);
}
program_ref class_means(const latent_shape& shape, std::int64_t classes) {
  return std::make_shared<const sum_up>(shape, classes);
}

} // namespace mneme

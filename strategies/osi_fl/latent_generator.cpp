#include "strategies/osi_fl/latent_generator.hpp"
#include "runtime/base/new_tensor.hpp"
#include "strategies/osi_fl/latent_encoding.hpp"
#include "strategies/osi_fl/latent_training.hpp"
#include <algorithm>
namespace mneme {
namespace {

// Parts of the training. Each part has a range of a hundred purposes for its random draws.
constexpr std::uint32_t generator_purposes = first_method_purpose + 1000;
enum part : std::uint32_t { encoder_part, components_part, encoding_part, denoiser_part, moments_part };

bool share_classes(const std::vector<class_range>& tasks) {
  for (std::size_t t = 1; t < tasks.size(); ++t)
    if (tasks[t].low < tasks[t - 1].high)
      return true;
  return false;
}

/// Public rows of all tasks, in task order, with the kind of each row.
struct public_data {
  sample_view samples{};
  at::Tensor kinds{}; // [n] int64
};

public_data gathered(const central_rows& from, std::int64_t tasks, std::int64_t classes, bool by_task) {
  auto rows = std::make_shared<std::vector<std::int64_t>>();
  std::vector<std::int64_t> kinds;
  sample_view open;
  for (std::uint32_t t = 0; t < tasks; ++t) {
    open = from.of_public({t});
    for (const auto row : *open.rows) {
      rows->push_back(row);
      kinds.push_back(open.source->label(row) + (by_task ? std::int64_t{t} * classes : 0));
    }
  }
  auto numbers = new_tensor({std::ssize(kinds)}, at::kLong);
  std::copy(kinds.begin(), kinds.end(), numbers.mutable_data_ptr<std::int64_t>());
  return {.samples = {.source = open.source, .rows = std::move(rows)}, .kinds = numbers};
}

} // namespace

latent_shape latent_generator::shape_of(const method_setup& setup, std::int64_t embedding) {
  return {.image = setup.shape,
          .kinds = setup.classes * (share_classes(setup.task_classes) ? setup.tasks : 1),
          .embedding = embedding};
}

latent_generator::latent_generator(const method_setup& setup, const generator_settings& settings)
    : seed_(setup.seed), tasks_(setup.tasks), classes_(setup.classes),
      tasks_share_classes_(share_classes(setup.task_classes)), describing_(settings.describing) {
  auto shape = shape_of(setup, settings.embedding);
  shape.latent_max = settings.components;
  encoder_training_ = encoder_training(shape, settings.encoder_passes, settings.batch);
  component_analysis_ = component_analysis(shape, settings.component_passes);
  encoding_ = latent_encoding(shape);
  denoiser_training_ = denoiser_training(shape, settings.denoiser_passes, settings.batch);
  auto sampling = settings.sampling;
  if (describing_) // without an encoder no image can be selected
    sampling.candidates = 1;
  else if (settings.matches_moments)
    moment_matching_ = moment_matching(shape, sampling);
  generation_ = latent_generation(shape, sampling);
}

rng_key latent_generator::stream(std::uint32_t part) const {
  return {.seed = seed_, .purpose = generator_purposes + 100 * part};
}

/// The job that computes embeddings: `describing`, or the training of an encoder if `describing` is null.
program_job latent_generator::embedding_job(const at::Tensor& kinds, const sample_view& samples) const {
  if (describing_)
    return {.body = describing_, .samples = samples};
  auto in = std::make_shared<tensor_map>();
  in->put("kinds", kinds);
  return {.body = encoder_training_, .in = in, .samples = samples, .stream = stream(encoder_part)};
}

task<void> latent_generator::train(server_context& ctx) {
  const auto open = gathered(ctx.rows(), tasks_, classes_, tasks_share_classes_);
  auto first = ctx.run(embedding_job(open.kinds, open.samples));
  auto second = ctx.run({.body = component_analysis_, .samples = open.samples, .stream = stream(components_part)});
  auto both = first & second;
  auto learned = co_await both;
  auto nets = std::make_shared<tensor_map>();
  if (!describing_)
    nets->put("encoder", std::get<0>(learned).out->at("weights"));
  for (const auto* name : component_tensors)
    nets->put(name, std::get<1>(learned).out->at(name));

  auto condition_rows = std::make_shared<tensor_map>(*nets);
  if (describing_)
    condition_rows->put("embeddings", std::get<0>(learned).out->at("embeddings"));
  auto encoding =
      ctx.run({.body = encoding_, .in = condition_rows, .samples = open.samples, .stream = stream(encoding_part)});
  auto encoded = co_await encoding;
  auto encoded_rows = std::make_shared<tensor_map>(*encoded.out);
  encoded_rows->put("kinds", open.kinds);
  auto denoising = ctx.run({.body = denoiser_training_, .in = encoded_rows, .stream = stream(denoiser_part)});
  auto denoised = co_await denoising;
  auto whole = std::make_shared<tensor_map>(*nets);
  whole->put("denoiser", denoised.out->at("weights"));
  if (moment_matching_) {
    auto to_match = std::make_shared<tensor_map>(*encoded_rows);
    to_match->put("denoiser", whole->at("denoiser"));
    auto matching = ctx.run({.body = moment_matching_, .in = to_match, .stream = stream(moments_part)});
    auto matched = co_await matching;
    for (const auto* name : moment_tensors)
      whole->put(name, matched.out->at(name));
  }
  nets_ = whole;
}

tensors_ref latent_generator::encoder() const {
  MNEME_CHECK(is_trained());
  auto sent = std::make_shared<tensor_map>();
  sent->put("encoder", nets_->at("encoder"));
  return sent;
}

program_job latent_generator::generation(const at::Tensor& condition, const rng_key& stream) const {
  MNEME_CHECK(is_trained());
  auto in = std::make_shared<tensor_map>();
  if (!describing_)
    in->put("encoder", nets_->at("encoder"));
  in->put("denoiser", nets_->at("denoiser"));
  for (const auto* name : component_tensors)
    in->put(name, nets_->at(name));
  if (moment_matching_)
    for (const auto* name : moment_tensors)
      in->put(name, nets_->at(name));
  in->put("condition", condition);
  return {.body = generation_, .in = in, .stream = stream};
}

} // namespace mneme

#include "strategies/osi_fl/osi_options.hpp"
#include "strategies/osi_fl/latent_training.hpp"
#include <fmt/format.h>
namespace mneme {

diagnostics osi_options::check(const method_setup& setup) const {
  diagnostics errors;
  if (setup.net->classes() == 0)
    errors.push_back({"model.name", fmt::format("'{}' has no head, so there is nothing to train; every other model has "
                                                "one",
                                                setup.net->identity())});
  if (!setup.has_images())
    errors.push_back(
        {"data.name", "the generator makes images, but the data are rows of tokens or numbers; expected images"});
  const std::string once =
      ": a client sends one message per task, but clients of the previous task would send again; expected ";
  if (norm == frozen_norm::batch && setup.trainable == trainable_part::all)
    errors.push_back({"strategy.frozen_norm",
                      "strategy.frozen_norm = \"batch\": nothing is frozen, so batch norms use the statistics of the "
                      "step in any case; expected model.trainable = \"head\", or \"running\""});
  if (view == score_view::augmented && setup.training.augment == augmentation_kind::none)
    errors.push_back({"strategy.score_view", "strategy.score_view = \"augmented\": rows have no augmentation; expected "
                                             "training.augment = \"resized-crop-flip\", or \"plain\""});
  if (setup.transition == task_transition::staggered)
    errors.push_back({"tasks.transition", "tasks.transition = \"staggered\"" + once + "\"round\""});
  if (setup.keep_task_share > 0.0)
    errors.push_back({"tasks.keep_task_share", "tasks.keep_task_share > 0" + once + "0"});
  if (setup.public_rows == 0 && !uses_diffusion_parts())
    errors.push_back({"partition.public_share", "partition.public_share = 0: the generator is trained on rows that no "
                                                "client holds, but there are none; expected a share such as 0.15"});
  if (generator.matches_moments && captions())
    errors.push_back({"strategy.match_moments",
                      "no effect with a captioner, since the run's encoder classifies conditions; remove the key"});
  if (!shape.empty() && (shape.size() != 2 || !captions()))
    errors.push_back({"strategy.condition_shape", captions() ? "expected two numbers, tokens and the width of each"
                                                             : "no effect without the modules of a captioner"});
  else if (captions())
    for (auto& finding : parts.check(setup, condition_numbers(), uses_diffusion_parts()))
      errors.push_back(std::move(finding));
  return errors;
}

void osi_options::keys(key_table& table) {
  table.choice("mode", mode,
               {{"osi-fl", run_mode::osi_fl},
                {"oscar", run_mode::oscar},
                {"oscar-r", run_mode::oscar_r},
                {"oscar-il", run_mode::oscar_il}},
               "Measure against forgetting: retain selected images, retain all, penalize changes of the net, or none.");
  table.choice("condition", condition, {{"embed512", condition_kind::embed512}, {"sd77x768", condition_kind::sd77x768}},
               "Condition of the generator, which a client sends per class: 512 numbers, or 77 tokens of 768 numbers.");
  table.integers("condition_shape", shape, {.low = 1, .high = 100'000},
                 "Number of tokens and width of a token, for modules whose shape is not that of the condition.");
  parts.keys(table);
  table.integer("retained_per_class", p, {.low = 0, .high = 1'000'000},
                "Number of images retained per class and task (mode = \"osi-fl\").");
  table.choice("criterion", criterion,
               {{"gradient-norm", retention::gradient_norm},
                {"loss", retention::loss},
                {"random", retention::random},
                {"herding", retention::herding}},
               "Images to retain: those with the largest gradient or loss, random ones, or those near the class mean.");
  table.choice("scoring_model", moment, {{"before", score_moment::before}, {"after", score_moment::after}},
               "Model that scores images for retention: the one before or after the task's training.");
  table.choice(
      "score_view", view, {{"plain", score_view::plain}, {"augmented", score_view::augmented}},
      "Images for scoring: unchanged, or one augmented view of each (training.augment), as in the official code.");
  table.omit_default_from_digest();
  table.choice(
      "loss_classes", classes, {{"opened", loss_classes::opened}, {"all", loss_classes::all}},
      "Classes that the loss covers: those of tasks opened so far, or all of the run as in the official code.");
  table.omit_default_from_digest();
  table.choice("frozen_norm", norm, {{"running", frozen_norm::running}, {"batch", frozen_norm::batch}},
               "Statistics of batch norms in a frozen net (model.trainable = \"head\"): running ones, or those of the "
               "step, which also update the running ones, as in the official code.");
  table.omit_default_from_digest();
  table.choice("replay", weighs_tasks, {{"eq16", true}, {"concat", false}},
               "Weights of replayed images: the same sum for every task (eq. 16), or the same for every image.");
  table.choice("penalty", penalty, {{"sum", change_penalty::sum}, {"tensor-means", change_penalty::tensor_means}},
               "Penalty of mode = \"oscar-r\": lambda / 2 |w - w_(t-1)|^2, or lambda times the sum over tensors of the "
               "mean squared change, from task 2 on, as in the official code.");
  table.omit_default_from_digest();
  table.choice("keep_epoch", epoch, {{"last", kept_epoch::last}, {"best", kept_epoch::best}},
               "Model after training: that of the last epoch, or of the epoch with the highest training accuracy, as "
               "in OSCAR's official code.");
  table.omit_default_from_digest();
  table.number("lambda", lambda, {.low = 0.0}, "Weight of the penalty on changes of the model (oscar-r).");
  table.integer("images", generator.sampling.images, {.low = 1, .high = 100'000},
                "Number of images generated per client and class.");
  table.integer("shown_images", shown_images, {.low = 1, .high = 100'000},
                "Number of images per class in samples.png, from those generated for the first client of the class.");
  table.omit_default_from_digest();
  table.integer("candidates", generator.sampling.candidates, {.low = 1, .high = 1'000},
                "Images generated per selected image; the encoder selects those that it recognizes. 1: all.");
  table.number("guidance", generator.sampling.guidance, {.low = 0.0, .high = 100.0},
               "Guidance w in unconditional + w (conditional - unconditional); 1: the condition alone.");
  table.integer("sampling_steps", generator.sampling.steps, {.low = 2, .high = diffusion_times}, "Steps of DDIM.");
  table.integer("components", generator.components, {.low = 1, .high = 100'000},
                "Number of principal components that the generator makes per image; at most the number of pixels.");
  table.flag("match_moments", generator.matches_moments,
             "Map generated components of a class to the mean and covariance of its public rows.");
  table.integer("encoder_passes", generator.encoder_passes, {.low = 1, .high = 100'000},
                "Epochs of the encoder's training on the public rows.");
  table.integer("component_passes", generator.component_passes, {.low = 1, .high = 100'000},
                "Epochs of the principal components' training on the public rows.");
  table.integer("denoiser_passes", generator.denoiser_passes, {.low = 1, .high = 100'000},
                "Epochs of the denoiser's training on the public rows.");
  table.path("generator_cache", cache,
             "Folder that caches trained parts for later runs, by a digest of their inputs; empty: no cache.");
  table.integer("generator_batch", generator.batch, {.low = 1, .high = 65'536},
                "Rows per step in the training of the encoder, the components and the denoiser.");
}

std::vector<preset> osi_options::presets() {
  return {{.name = "paper",
           .meaning = "training of the server as in the paper's table: Adam at 1e-3, decay 1e-4, 20 epochs, batches "
                      "of 256",
           .toml = "[training]\noptimizer = \"adam\"\nlearning_rate = 1e-3\nweight_decay = 1e-4\nepochs = 20\n"
                   "batch = 256\n"},
          {.name = "official",
           .meaning =
               "the server of the official code: SGD trains the head of a pretrained net, the retained images have "
               "the largest loss after the task, all images have equal weight, predictions are over all classes",
           .toml = "[strategy]\ncriterion = \"loss\"\nscoring_model = \"after\"\nscore_view = \"augmented\"\n"
                   "loss_classes = \"all\"\nfrozen_norm = \"batch\"\nreplay = \"concat\"\n"
                   "penalty = \"tensor-means\"\nlambda = 0.01\n"
                   "[model]\ntrainable = \"head\"\n"
                   "[training]\noptimizer = \"sgd\"\nlearning_rate = 1e-3\nmomentum = 0.9\nepochs = 25\n"
                   "batch = 32\naugment = \"resized-crop-flip\"\n[evaluation]\nmask = \"all\"\n"},
          {.name = "official-oscar",
           .meaning = "the server of OSCAR's official code: SGD trains the whole net on all generated images, and the "
                      "epoch with the highest training accuracy is kept",
           .toml = "[strategy]\nmode = \"oscar\"\nloss_classes = \"all\"\nreplay = \"concat\"\n"
                   "keep_epoch = \"best\"\n"
                   "[training]\noptimizer = \"sgd\"\nlearning_rate = 5e-4\nmomentum = 0.9\nepochs = 20\n"
                   "batch = 256\n[evaluation]\nmask = \"all\"\n"}};
}

} // namespace mneme

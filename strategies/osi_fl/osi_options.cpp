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
        {"data.name", "the generator makes images, and the data are rows of tokens or numbers; expected images"});
  const std::string once = ": a client speaks once in a task, which clients of the one before do again; expected ";
  if (norm == frozen_norm::batch && setup.trainable == trainable_part::all)
    errors.push_back({"strategy.frozen_norm", "strategy.frozen_norm = \"batch\": nothing is frozen, so batch norms use "
                                              "the step's statistics anyway; expected model.trainable = \"head\", or "
                                              "\"running\""});
  if (view == score_view::augmented && setup.training.augment == augmentation_kind::none)
    errors.push_back({"strategy.score_view", "strategy.score_view = \"augmented\": there is no augmentation to view "
                                             "rows under; expected training.augment = \"resized-crop-flip\", or "
                                             "\"plain\""});
  if (setup.transition == task_transition::staggered)
    errors.push_back({"tasks.transition", "tasks.transition = \"staggered\"" + once + "\"round\""});
  if (setup.staying_share > 0.0)
    errors.push_back({"tasks.keep_task_share", "tasks.keep_task_share > 0" + once + "0"});
  if (setup.public_rows == 0 && !uses_diffusion_parts())
    errors.push_back(
        {"partition.public_share",
         "partition.public_share = 0: the generator is trained on rows that no client holds, and there are "
         "none; expected a share such as 0.15"});
  if (generator.matches_moments && captions())
    errors.push_back({"strategy.match_moments",
                      "no effect where a captioner describes rows: the encoder of the run tells which kind a condition "
                      "stands for; leave the key away"});
  if (!shape.empty() && (shape.size() != 2 || !captions()))
    errors.push_back({"strategy.condition_shape", captions() ? "expected two numbers, tokens and numbers of each"
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
               "Selected images are retained; all are, and each task trains anew; the model is held back; nothing.");
  table.choice("condition", condition, {{"embed512", condition_kind::embed512}, {"sd77x768", condition_kind::sd77x768}},
               "What a client sends of a class and the generator is told: 512 numbers, or 77 tokens of 768.");
  table.integers("condition_shape", shape, {.low = 1, .high = 100'000},
                 "Tokens, and numbers of each, of modules that have others than the condition's name says.");
  parts.keys(table);
  table.integer("retained_per_class", p, {.low = 0, .high = 1'000'000},
                "osi-fl: images retained of each class and task.");
  table.choice("criterion", criterion,
               {{"gradient-norm", retention::gradient_norm},
                {"loss", retention::loss},
                {"random", retention::random},
                {"herding", retention::herding}},
               "osi-fl: which are retained: those of the largest gradient or loss, any, or those near the class mean.");
  table.choice("scoring_model", moment, {{"before", score_moment::before}, {"after", score_moment::after}},
               "osi-fl: the model that judges them: the one before the task was learnt, or after.");
  table.choice("score_view", view, {{"plain", score_view::plain}, {"augmented", score_view::augmented}},
               "osi-fl: how it is shown them: as they are, or one view each under training.augment, as released.");
  table.omit_default_from_digest();
  table.choice("loss_classes", classes, {{"opened", loss_classes::opened}, {"all", loss_classes::all}},
               "Classes that the loss covers: those of tasks opened so far, or all of the run, as released.");
  table.omit_default_from_digest();
  table.choice(
      "frozen_norm", norm, {{"running", frozen_norm::running}, {"batch", frozen_norm::batch}},
      "model.trainable = \"head\": batch norms of the frozen net use their running statistics, or those of the "
      "step, which move the running ones, as released.");
  table.omit_default_from_digest();
  table.choice("replay", weighs_tasks, {{"eq16", true}, {"concat", false}},
               "Whether each earlier task weighs as much as the new one, or each image as much as any other.");
  table.choice("penalty", penalty, {{"sum", change_penalty::sum}, {"tensor-means", change_penalty::tensor_means}},
               "oscar-r: lambda / 2 |w - w_(t-1)|^2, or lambda times the sum over tensors of the mean squared change, "
               "which leaves the first task free, as released.");
  table.omit_default_from_digest();
  table.choice(
      "keep_epoch", epoch, {{"last", kept_epoch::last}, {"best", kept_epoch::best}},
      "What training leaves: the model of its last epoch, or that of the epoch in which most images were taken "
      "for their class as it trained on them, as OSCAR's own program does.");
  table.omit_default_from_digest();
  table.number("lambda", lambda, {.low = 0.0}, "oscar-r: weight of the penalty on changes of the model.");
  table.integer("images", generator.sampling.images, {.low = 1, .high = 100'000},
                "Images made for each client and class.");
  table.integer("shown_images", shown_images, {.low = 1, .high = 100'000},
                "Of those that are made for the first client of a class, how many samples.png shows.");
  table.omit_default_from_digest();
  table.integer("candidates", generator.sampling.candidates, {.low = 1, .high = 1'000},
                "Images made for each that is kept: the encoder keeps those that it recognises; 1: all are kept.");
  table.number("guidance", generator.sampling.guidance, {.low = 0.0, .high = 100.0},
               "w of unconditional + w (conditional - unconditional); 1: the condition alone.");
  table.integer("sampling_steps", generator.sampling.steps, {.low = 2, .high = diffusion_times}, "Steps of DDIM.");
  table.integer("components", generator.components, {.low = 1, .high = 100'000},
                "Principal components of an image, which are what is generated; no more than there are pixels.");
  table.flag("match_moments", generator.matches_moments,
             "Whether what is generated of a kind is given the mean and covariance of its public rows' components.");
  table.integer("encoder_passes", generator.encoder_passes, {.low = 1, .high = 100'000},
                "Passes over the public rows in which the encoder is trained.");
  table.integer("component_passes", generator.component_passes, {.low = 1, .high = 100'000},
                "The same for the principal components.");
  table.integer("denoiser_passes", generator.denoiser_passes, {.low = 1, .high = 100'000},
                "The same for the denoiser.");
  table.path("generator_cache", cache,
             "Where what training has made is kept for later runs, by all that it follows from; empty: nowhere.");
  table.integer("generator_batch", generator.batch, {.low = 1, .high = 65'536}, "Rows of a step of these three.");
}

std::vector<preset> osi_options::presets() {
  return {{.name = "paper",
           .meaning = "training of the server as in the paper's table: Adam at 1e-3, decay 1e-4, 20 epochs, batches "
                      "of 256",
           .toml = "[training]\noptimizer = \"adam\"\nlearning_rate = 1e-3\nweight_decay = 1e-4\nepochs = 20\n"
                   "batch = 256\n"},
          {.name = "official",
           .meaning = "the server of the released program: the head of a pretrained net learns by SGD, what is kept "
                      "has the largest loss after the task, all images count alike, answers are among all classes",
           .toml = "[strategy]\ncriterion = \"loss\"\nscoring_model = \"after\"\nscore_view = \"augmented\"\n"
                   "loss_classes = \"all\"\nfrozen_norm = \"batch\"\nreplay = \"concat\"\n"
                   "penalty = \"tensor-means\"\nlambda = 0.01\n"
                   "[model]\ntrainable = \"head\"\n"
                   "[training]\noptimizer = \"sgd\"\nlearning_rate = 1e-3\nmomentum = 0.9\nepochs = 25\n"
                   "batch = 32\naugment = \"resized-crop-flip\"\n[evaluation]\nmask = \"all\"\n"},
          {.name = "official-oscar",
           .meaning =
               "the server of OSCAR's own program: a whole net learns by SGD from all images that were made, and "
               "the epoch is kept in which most of them were taken for their class",
           .toml = "[strategy]\nmode = \"oscar\"\nloss_classes = \"all\"\nreplay = \"concat\"\n"
                   "keep_epoch = \"best\"\n"
                   "[training]\noptimizer = \"sgd\"\nlearning_rate = 5e-4\nmomentum = 0.9\nepochs = 20\n"
                   "batch = 256\n[evaluation]\nmask = \"all\"\n"}};
}

} // namespace mneme

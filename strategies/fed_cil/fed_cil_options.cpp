#include "strategies/fed_cil/fed_cil_options.hpp"
#include "strategies/shared/split_learning.hpp"
namespace mneme::fed_cil_method {

// Source lines refer to github.com/daiqing98/FedCIL at commit c439de0, by default to FLAlgorithms/generator/model.py.
std::vector<preset> fed_cil_presets() {
  // The consistency terms are multiplied by 0 (:494). Labels of fakes come from the classes so far (:199, :269) and
  // overwrite noise (:251). The softmax covers all classes of the run (gan.py:71). A client replays its own last
  // generator (userbase.py:94, userpFedCL.py:94). The server draws labels from a pool (serverpFedCL.py:339, :344).
  const std::string game = "[strategy]\nconsistency = 0.0\nfake_labels = \"any\"\nclass_loss = \"all\"\n"
                           "codes = \"overwritten\"\nreplay = \"own\"\nconsolidation = \"pooled\"\n";
  // Nets are for images (gan.py:16, :82) of 32 pixels (serverpFedCL.py:72), with 64 filters and 110 numbers of noise
  // (main.py:85). They start from N(0, 0.02^2) (serverbase.py:109). Batches come from shuffles without short ones
  // (userbase.py:36). 200 rounds over five tasks have 400 steps of 32 rows (run-ours.sh:2) and 100 of consolidation
  // (main.py:105 and run-ours.sh:5; its first command has 50). Optimizers persist (serverbase.py:76).
  const std::string run = game + "nets = \"images\"\nlatent = 110\ngenerator_width = 64\ncritic_width = 64\n"
                                 "start = \"normal\"\nreal_rows = \"shuffled\"\nlocal_steps = 400\ngan_batch = 32\n"
                                 "consolidation_steps = 100\n";
  const std::string around =
      "[model]\nname = \"identity\"\n[data]\nresize = 32\n[tasks]\ncount = 5\n[rounds]\nper_task = 40\n";
  // Learning rates: main.py:89 for gray images; main.py:99 and serverbase.py:63 for CIFAR-10, where the moments of
  // clients are reset in each task (userbase.py:80).
  return {
      {.name = "official",
       .meaning = "losses, draws, replay, nets, initialization and counts of an official run on gray images; the "
                  "scenario must set five clients",
       .toml = run + "gan_rate = 1e-4\ngan_beta2 = 0.99\ngan_decay = 1e-5\nmoments = \"kept\"\n" + around},
      {.name = "official-cifar10",
       .meaning =
           "as preset \"official\", with the official optimizers for CIFAR-10; the deeper nets with dropout of that "
           "run are not implemented",
       .toml = run + "gan_rate = 2e-4\ngan_beta2 = 0.999\ngan_decay = 0.0\nmoments = \"each-task\"\n" + around},
      {.name = "as-published",
       .meaning = "losses, labels, latent vectors, replay and consolidation of preset \"official\", for nets on "
                  "features; the scenario sets sizes, rates and counts",
       .toml = game}};
}

void options::keys(key_table& table) {
  table.choice(
      "nets", of_images, {{"features", false}, {"images", true}},
      "Generator and critic: two linear layers each for features, or the official code's convolutional nets for images "
      "(with model.name = \"identity\").");
  table.omit_default_from_digest();
  table.integer("latent", net.latent, {.low = 1, .high = 65'536}, "Width of the generator's noise vector.");
  table.integer("generator_width", net.generator_width, {.low = 1, .high = 65'536},
                "Width of the generator's hidden layer; images: filters of its last hidden map.");
  table.integer("critic_width", net.critic_width, {.low = 1, .high = 65'536},
                "Width of the critic's hidden layer; images: filters of its first map.");
  table.choice("start", normal_start, {{"layers", false}, {"normal", true}},
               "Initial weights: PyTorch's defaults, or N(0, 0.02^2) with biases 0.");
  table.omit_default_from_digest();
  table.integer("local_steps", steps, {.low = 1, .high = 1'000'000},
                "Steps of a client per round; training.epochs, batch and learning_rate are not used.");
  table.integer("gan_batch", batch, {.low = 1, .high = 100'000}, "Rows per step.");
  table.number("gan_rate", learning_rate, {.low = 0.0, .open_low = true},
               "Learning rate of Adam for both nets, with beta1 = 0.5.");
  table.number("gan_beta2", beta2, {.low = 0.0, .high = 0.999999}, "Adam's beta2 for both nets.");
  table.omit_default_from_digest();
  table.number("gan_decay", decay, {.low = 0.0}, "Weight decay of both nets.");
  table.choice("moments", moments,
               {{"kept", moments_rule::kept}, {"each-task", moments_rule::each_task}, {"new", moments_rule::fresh}},
               "Adam's moments: kept by client and server over the run; kept, but reset for a client at the start of "
               "each task; or reset in each round.");
  table.choice(
      "real_rows", shuffles, {{"drawn", false}, {"shuffled", true}},
      "Batches of a client: rows drawn with replacement, or shuffled epochs without short last batches. Clients "
      "with fewer rows than a batch draw with replacement.");
  table.omit_default_from_digest();
  table.choice(
      "fake_labels", any_fakes, {{"as-real", false}, {"any", true}},
      "Labels of generated rows: those of the real rows in the step, or drawn from the client's classes so far.");
  table.choice("class_loss", all_classes, {{"seen", false}, {"all", true}},
               "Classes of the cross-entropy: those of the tasks so far, or all of the run.");
  table.choice("codes", net.overwrites, {{"appended", false}, {"overwritten", true}},
               "Position of the label in a generator's input: after the noise, or in place of its first numbers.");
  table.choice("replay", own_replay, {{"server", false}, {"own", true}},
               "Generator of old rows at the end of the previous task: that of the server, or that of the client.");
  table.choice(
      "consolidation", pooled, {{"in-turn", false}, {"pooled", true}},
      "Rows of the server's steps: made by the generators in turn for classes in turn, or class-balanced draws "
      "from a pool in which each generator puts rows of its client's classes.");
  table.integer("consolidation_steps", consolidation_steps, {.low = 0, .high = 1'000'000},
                "Steps of the server after each average, on rows of the clients' generators.");
  table.number("consistency", consistency, {.low = 0.0},
               "Weight of the terms that keep clients consistent with the server's generator; 0 in the official code.");
  backbone_keys(table, layer, feature_cache);
}

} // namespace mneme::fed_cil_method

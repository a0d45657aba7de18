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
  return {{.name = "official",
           .meaning = "a run of the public code on grey images: its losses, draws, replay, nets, start and counts; its "
                      "five clients are the scenario's",
           .toml = run + "gan_rate = 1e-4\ngan_beta2 = 0.99\ngan_decay = 1e-5\nmoments = \"kept\"\n" + around},
          {.name = "official-cifar10",
           .meaning = "the same with its optimizers of CIFAR-10; its deeper nets with dropout are not built",
           .toml = run + "gan_rate = 2e-4\ngan_beta2 = 0.999\ngan_decay = 0.0\nmoments = \"each-task\"\n" + around},
          {.name = "as-published",
           .meaning = "of preset \"official\" the losses, labels, codes, replay and consolidation alone: for nets of "
                      "features, and counts of the scenario's own",
           .toml = game}};
}

void options::keys(key_table& table) {
  table.choice("nets", of_images, {{"features", false}, {"images", true}},
               "Two linear layers each, of features; or the public code's convolutions, of images behind model.name = "
               "\"identity\".");
  table.omit_default_from_digest();
  table.integer("latent", net.latent, {.low = 1, .high = 65'536}, "Numbers of noise that the generator reads.");
  table.integer("generator_width", net.generator_width, {.low = 1, .high = 65'536},
                "Width of the generator's hidden layer; of images, filters of its last map but one.");
  table.integer("critic_width", net.critic_width, {.low = 1, .high = 65'536},
                "Width of the critic's hidden layer; of images, filters of its first map.");
  table.choice("start", normal_start, {{"layers", false}, {"normal", true}},
               "Initial weights: as PyTorch's layers draw them, or N(0, 0.02^2) with biases 0.");
  table.omit_default_from_digest();
  table.integer("local_steps", steps, {.low = 1, .high = 1'000'000},
                "Steps of a client in a round; training.epochs, batch and rates are not read.");
  table.integer("gan_batch", batch, {.low = 1, .high = 100'000}, "Rows of a step.");
  table.number("gan_rate", learning_rate, {.low = 0.0, .open_low = true},
               "Learning rate of Adam for both nets, with beta1 = 0.5.");
  table.number("gan_beta2", beta2, {.low = 0.0, .high = 0.999999}, "Adam's beta2 for both nets.");
  table.omit_default_from_digest();
  table.number("gan_decay", decay, {.low = 0.0}, "Weight decay of both nets.");
  table.choice("moments", moments,
               {{"kept", moments_rule::kept}, {"each-task", moments_rule::each_task}, {"new", moments_rule::fresh}},
               "Adam's moments: kept in the client's memory, and by the server; the same, but new for a client in each "
               "task; or new in each round.");
  table.choice("real_rows", shuffles, {{"drawn", false}, {"shuffled", true}},
               "A client's batches: rows drawn with replacement, or shuffled, pass after pass of the task, without "
               "short last batches. Clients with fewer rows than a batch draw.");
  table.omit_default_from_digest();
  table.choice("fake_labels", any_fakes, {{"as-real", false}, {"any", true}},
               "Labels of fakes: those of the rows beside them, or drawn from the client's classes so far.");
  table.choice("class_loss", all_classes, {{"seen", false}, {"all", true}},
               "Classes that cross-entropy compares: those of the tasks so far, or all of the run.");
  table.choice("codes", net.overwrites, {{"appended", false}, {"overwritten", true}},
               "Where a generator reads the label: behind the noise, or in place of its first numbers.");
  table.choice("replay", own_replay, {{"server", false}, {"own", true}},
               "Which generator makes old rows: the server's of the task before, or the client's own.");
  table.choice(
      "consolidation", pooled, {{"in-turn", false}, {"pooled", true}},
      "Rows of the server's steps: generators and fresh classes in turn, or a pool of what each generator makes "
      "of its client's classes, of which labels are drawn.");
  table.integer("consolidation_steps", consolidation_steps, {.low = 0, .high = 1'000'000},
                "Steps of the server behind each average, on rows of the clients' generators.");
  table.number("consistency", consistency, {.low = 0.0},
               "Weight of the terms that hold clients to the server's generator; 0 as the public code has it.");
  backbone_keys(table, layer, feature_cache);
}

} // namespace mneme::fed_cil_method

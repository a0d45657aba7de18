#include "runtime/scenario/sections.hpp"
namespace mneme {
namespace {

void noise_keys(section_keys& keys, uploads_section& to) {
  const bool has_noise = to.noise_multiplier > 0.0;
  const std::string readers = "only uploads.noise_multiplier > 0";
  keys.number(
      "noise_multiplier", to.noise_multiplier, {.low = 0.0, .high = 1e6},
      "Differential privacy of clients: standard deviation of Gaussian noise, as a multiple of clip_norm; 0: no "
      "noise.");
  keys.omit_default_from_digest();
  keys.choice(
      "noise", to.noise,
      {{"server", noise_place::server}, {"client", noise_place::client}, {"tree", noise_place::tree}},
      "server: noise is added once per round to the sum of updates, which is divided by the cohort (DP-FedAvg); "
      "client: each client adds noise to its update (local privacy); tree: as server, but the noise of a sum of "
      "rounds is that of a binary tree (DP-FTRL).");
  keys.omit_default_from_digest();
  keys.used_if(has_noise, readers);
  keys.number("delta", to.delta, {.low = 0.0, .high = 0.5, .open_low = true},
              "The delta at which metrics.jsonl and summary.json state epsilon.");
  keys.omit_default_from_digest();
  keys.used_if(has_noise, readers);
}

section_keys uploads_keys(uploads_section& to) {
  section_keys keys;
  keys.number("clip_norm", to.clip_norm, {.low = 0.0},
              "Maximum L2 norm of a client's update w_k - w; longer updates are scaled down; 0: no limit.");
  keys.omit_default_from_digest();
  noise_keys(keys, to);
  keys.number("top_k", to.top_k, {.low = 0.0, .high = 1.0, .open_low = true},
              "Share of the entries of an update that are sent, those of largest magnitude (of equal ones the first), "
              "each with its index; 1: all.");
  keys.omit_default_from_digest();
  keys.integer("quantise", to.quantise, {.low = 0, .high = 16},
               "Bits per sent value, 2 to 16, with one scale per update; 0: float32.");
  keys.omit_default_from_digest();
  keys.choice("rounding", to.rounding, {{"stochastic", rounding_kind::stochastic}, {"nearest", rounding_kind::nearest}},
              "quantise: stochastic: up or down at random, so that the mean is exact; nearest: half to even.");
  keys.omit_default_from_digest();
  keys.used_if(to.quantise > 0, "only uploads.quantise > 0");
  keys.flag("error_feedback", to.error_feedback,
            "Add what top_k and quantise leave out to the client's next update; the client keeps it in its memory.");
  keys.omit_default_from_digest();
  keys.used_if(to.compresses(), "only uploads.top_k < 1 or uploads.quantise > 0");
  keys.choice("secure_aggregation", to.secure_aggregation,
              {{"none", secure_aggregation_kind::none}, {"masked", secure_aggregation_kind::masked}},
              "masked: counts the bytes and messages of pairwise masks (Bonawitz et al. 2017); values do not change.");
  keys.omit_default_from_digest();
  return keys;
}

section_keys aggregation_keys(aggregation_section& to) {
  section_keys keys;
  const auto rule = to.rule;
  keys.choice("rule", to.rule,
              {{"mean", aggregation_rule::mean},
               {"median", aggregation_rule::median},
               {"trimmed-mean", aggregation_rule::trimmed_mean},
               {"krum", aggregation_rule::krum},
               {"multi-krum", aggregation_rule::multi_krum}},
              "How the server combines the weights of a round: the method's mean; the median or trimmed mean of each "
              "weight (Yin et al. 2018); or the uploads closest to the others (Krum, Blanchard et al. 2017). All but "
              "mean count uploads equally.");
  keys.omit_default_from_digest();
  keys.number("trim", to.trim, {.low = 0.0, .high = 0.499},
              "trimmed-mean: share of the uploads whose values are cut at each end, below 0.5.");
  keys.omit_default_from_digest();
  keys.used_if(rule == aggregation_rule::trimmed_mean, "only aggregation.rule = \"trimmed-mean\"");
  const bool krum = rule == aggregation_rule::krum || rule == aggregation_rule::multi_krum;
  keys.integer("byzantine", to.byzantine, {.low = 0, .high = 1'000'000},
               "krum, multi-krum: number of attackers in a cohort that the rule assumes.");
  keys.omit_default_from_digest();
  keys.used_if(krum, "only aggregation.rule = \"krum\" and \"multi-krum\"");
  keys.integer("selected", to.selected, {.low = 0, .high = 1'000'000},
               "multi-krum: number of uploads that are averaged; 0: all but `byzantine`.");
  keys.omit_default_from_digest();
  keys.used_if(rule == aggregation_rule::multi_krum, "only aggregation.rule = \"multi-krum\"");
  return keys;
}

} // namespace

void attack_keys(section_keys& keys, clients_section& to) {
  const bool attacks = to.attack != attack_kind::none;
  keys.choice(
      "attack", to.attack,
      {{"none", attack_kind::none},
       {"sign-flip", attack_kind::sign_flip},
       {"noise", attack_kind::noise},
       {"label-flip", attack_kind::label_flip}},
      "What attackers do: sign-flip: send the negative update; noise: send Gaussian noise as update; label-flip: "
      "train on labels that are mirrored within the classes of their task.");
  keys.omit_default_from_digest();
  keys.number("attackers", to.attackers, {.low = 0.0, .high = 1.0},
              "Share of the clients that attack in every round, drawn by the seed.");
  keys.omit_default_from_digest();
  keys.used_if(attacks, "only clients.attack other than \"none\"");
  keys.number("attack_scale", to.attack_scale, {.low = 0.0, .high = 1e6, .open_low = true},
              "sign-flip: factor of the negative update; noise: standard deviation of each entry.");
  keys.omit_default_from_digest();
  keys.used_if(to.attack == attack_kind::sign_flip || to.attack == attack_kind::noise,
               "only clients.attack = \"sign-flip\" and \"noise\"");
}

std::vector<section> upload_sections(scenario& into) {
  std::vector<section> sections;
  sections.push_back({"uploads", "Privacy and compression of a client's update before the server folds it.",
                      uploads_keys(into.uploads)});
  sections.push_back({"aggregation", "How the server combines uploads.", aggregation_keys(into.aggregation)});
  return sections;
}

} // namespace mneme

#include "strategies/fil_ver/embedding_rehearsal.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

// -- options ----------------------------------------------------------------------------------------------------------

void embedding_rehearsal_options::vector_keys(key_table& table) {
  table.integer("ebr_multiplier", multiplier, {.low = 1, .high = 1'000},
                "Factor of rehearsal_ratio if system = \"ebr\", because embeddings are smaller than images.");
  table.number("ebr_repeat_cap", repeat_cap, {.low = 0.0, .high = 1'000.0},
               "Maximum number of rehearsed vectors per task, as a multiple of the stored ones, if system = \"ebr\".");
  table.choice("noise_scope", noise, {{"rehearsal", noise_reading::other_encoder}, {"all", noise_reading::front_end}},
               "Vectors from the random encoder of system = \"noise\" (central-rehearsal): only rehearsed ones, or all "
               "that the classifier reads.");
}

void embedding_rehearsal_options::beta_key(key_table& table) {
  table.number("beta", encoder.beta, {.low = 0.0},
               "beta: weight of the KL divergence (summed over the embedding) in the training of a vee encoder.");
}

void embedding_rehearsal_options::training_keys(key_table& table) {
  table.number("vee_learning_rate", encoder.learning_rate, {.low = 0.0, .open_low = true},
               "Learning rate of Adam in a frozen encoder's training, before the first round.");
  table.integer(
      "vee_epochs", encoder.epochs, {.low = 0, .high = 100'000},
      "Epochs of a frozen encoder's training; 0: the encoder keeps its initial weights, random or from model.weights.");
}

std::int64_t embedding_rehearsal_options::rehearsed(std::int64_t rows, std::int64_t held, bool points) const {
  const auto most = points ? static_cast<std::int64_t>(static_cast<double>(held) * repeat_cap) : held;
  return std::min(share_of(share(points), rows), most);
}

// -- the net in two parts ---------------------------------------------------------------------------------------------

split_encoder_net split_encoder(const method_setup& setup, bool frozen) {
  return {.whole = setup, .learned = frozen ? classifier_setup(setup) : setup, .net = as_embedding_model(setup.net)};
}

diagnostics validate_net(const method_setup& setup, const std::string& method, const std::string& expected) {
  diagnostics errors;
  if (!as_embedding_model(setup.net))
    errors.push_back({"model.name", fmt::format("'{}' cannot be split into encoder and classifier; expected {}",
                                                setup.net->identity(), expected)});
  if (setup.trainable == trainable_part::head)
    errors.push_back({"model.trainable", fmt::format("model.trainable = \"head\": {} trains the whole classifier and "
                                                     "freezes the encoder itself; expected \"all\"",
                                                     method)});
  return errors;
}

// -- server half ------------------------------------------------------------------------------------------------------

encoder_server::encoder_server(const split_encoder_net& parts, const frozen_encoder::options& options, const rules& how)
    : averaging_server(parts.learned), encoder_(parts.whole, options), rules_(how) {}

broadcast encoder_server::open_round(const round_info& info) {
  auto sent = averaging_server::open_round(info);
  if (rules_.frozen)
    sent.initial_payload = encoder_.weights();
  return sent;
}

predictor encoder_server::predict() const {
  return rules_.frozen ? encoder_.with_classifier(weights(), rules_.sampled) : averaging_server::predict();
}

std::map<std::string, double> encoder_server::summary_metrics() const {
  std::map<std::string, double> figures;
  encoder_.add_figures(figures);
  return figures;
}

void encoder_server::persist(archive& state) {
  averaging_server::persist(state);
  state(encoder_);
}

// -- memory -----------------------------------------------------------------------------------------------------------

embedding_rows on_host(const extract_output& encoded) {
  return {.features = encoded.features.cpu(), .labels = encoded.labels.cpu().to(at::kInt)};
}

std::string of_task(const std::string& name, std::uint32_t task) { return name + "." + std::to_string(task + 1); }

void store_embeddings(tensor_map& memory, const std::string& kind, std::uint32_t task, const embedding_rows& rows) {
  memory.put(of_task(kind + "features", task), rows.features);
  memory.put(of_task(kind + "labels", task), rows.labels);
}

embedding_rows load_embeddings(const tensor_map& memory, const std::string& kind, std::uint32_t task) {
  const auto* const features = memory.find(of_task(kind + "features", task));
  if (!features)
    return {};
  return {.features = *features, .labels = memory.at(of_task(kind + "labels", task))};
}

} // namespace mneme

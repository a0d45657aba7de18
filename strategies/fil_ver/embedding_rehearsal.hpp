/// embedding_rehearsal: shared parts of FIL-VER and its centralized study. They are options with keys, the net split
/// into encoder and classifier, the server of a frozen encoder, and a learner's memory of embeddings.
#pragma once
#include "strategies/fil_ver/frozen_encoder.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/embedding_rows.hpp"
namespace mneme {

/// Interpretations of noise rehearsal. The text of the paper permits both.
enum class noise_reading : std::uint8_t {
  other_encoder, ///< A random encoder makes only the rehearsed vectors.
  front_end,     ///< The random encoder is the classifier's encoder, too.
};

/// Options of both methods, with the same keys.
struct embedding_rehearsal_options {
  frozen_encoder::options encoder{};
  double ratio = 0.1;          ///< Share of a task's rows that a method keeps, rehearses or sends.
  std::int64_t multiplier = 1; ///< Points only: factor of `ratio`.
  double repeat_cap = 1.0;     ///< Points only: upper bound on rehearsed vectors, as a multiple of the stored ones.
  noise_reading noise = noise_reading::other_encoder;

  /// Declares the keys ebr_multiplier, ebr_repeat_cap and noise_scope.
  void vector_keys(key_table& table);
  void beta_key(key_table& table);
  /// Declares the keys vee_learning_rate and vee_epochs.
  void training_keys(key_table& table);

  /// Share of a task's rows that is rehearsed or sent. @param points true for EBR
  [[nodiscard]] double share(bool points) const { return ratio * static_cast<double>(points ? multiplier : 1); }
  /// Number of vectors out of `held` to rehearse together with `rows` rows of the current task.
  [[nodiscard]] std::int64_t rehearsed(std::int64_t rows, std::int64_t held, bool points) const;
};

/// The net of a run, and the part that is trained in rounds: the classifier if the encoder is frozen, otherwise the
/// whole net.
struct split_encoder_net {
  method_setup whole{}, learned{};
  std::shared_ptr<const embedding_model> net{};
  [[nodiscard]] const embedding_shape& shape() const { return net->shape(); }
};
/// Splits the net of `setup`. @param frozen true: the encoder is frozen @pre setup.net is an embedding_model
[[nodiscard]] split_encoder_net split_encoder(const method_setup& setup, bool frozen);
/// Validates the net and its trained part. Returns an empty list if they are valid.
/// @param expected the valid models, for the error text
[[nodiscard]] diagnostics validate_net(const method_setup& setup, const std::string& method,
                                       const std::string& expected);

/// Averages the trained part (eq. 1). The method's open_task() trains the frozen encoder; the server sends it to each
/// client once, as initial payload, and evaluates it with the classifier.
class encoder_server : public averaging_server {
public:
  struct rules {
    bool frozen = true;               ///< False: the whole net is trained, and the encoder is unused.
    std::optional<rng_key> sampled{}; ///< Key of the samples that are used in tests; nullopt: tests use the means.
  };
  encoder_server(const split_encoder_net& parts, const frozen_encoder::options& options, const rules& how);
  broadcast open_round(const round_info& info) override;
  [[nodiscard]] predictor predict() const override;
  [[nodiscard]] std::map<std::string, double> summary_metrics() const override;
  void persist(archive& state) override;

protected:
  [[nodiscard]] frozen_encoder& encoder() noexcept { return encoder_; }

private:
  frozen_encoder encoder_;
  rules rules_;
};

/// Copies encoded rows to the host, for a memory.
[[nodiscard]] embedding_rows on_host(const extract_output& encoded);
/// Returns the name of a task's tensor in a memory: "features.1".
[[nodiscard]] std::string of_task(const std::string& name, std::uint32_t task);
/// Stores features and labels of a task's rows, as "KINDfeatures.1" and "KINDlabels.1".
void store_embeddings(tensor_map& memory, const std::string& kind, std::uint32_t task, const embedding_rows& rows);
/// Returns the stored rows of a task, or empty rows if there are none.
[[nodiscard]] embedding_rows load_embeddings(const tensor_map& memory, const std::string& kind, std::uint32_t task);

} // namespace mneme

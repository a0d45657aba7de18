/// embedding_rehearsal: what FIL-VER and its centralised study share: options with their keys, the net of a run in two
/// parts, the server of a frozen encoder, and what a learner remembers of embeddings.
#pragma once
#include "strategies/fil_ver/frozen_encoder.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/embedding_rows.hpp"
namespace mneme {

/// How the vectors of noise rehearsal are read; both are in the paper's words.
enum class noise_reading : std::uint8_t {
  other_encoder, ///< A random encoder makes what is rehearsed, and nothing else.
  front_end,     ///< The random encoder is the classifier's, too.
};

/// Options of both, with the same keys.
struct embedding_rehearsal_options {
  frozen_encoder::options encoder{};
  double ratio = 0.1;          ///< A share of a task's rows; each method says of which.
  std::int64_t multiplier = 1; ///< Points only: times `ratio`.
  double repeat_cap = 1.0;     ///< Points only: rehearsed at most, times what there is.
  noise_reading noise = noise_reading::other_encoder;

  /// ebr_multiplier, ebr_repeat_cap, noise_reading.
  void vector_keys(key_table& table);
  void beta_key(key_table& table);
  /// vee_learning_rate, vee_epochs.
  void training_keys(key_table& table);

  /// The share of a task's rows that is rehearsed, or sent. @param points of EBR
  [[nodiscard]] double share(bool points) const { return ratio * static_cast<double>(points ? multiplier : 1); }
  /// How many of `held` vectors are rehearsed beside `rows` rows of the current task.
  [[nodiscard]] std::int64_t rehearsed(std::int64_t rows, std::int64_t held, bool points) const;
};

/// The net of a run, and the part of it that is learnt in rounds: the classifier, where the encoder is frozen.
struct parted_net {
  method_setup whole{}, learnt{};
  std::shared_ptr<const embedding_model> net{};
  [[nodiscard]] const embedding_shape& shape() const { return net->shape(); }
};
[[nodiscard]] parted_net parted(const method_setup& setup, bool frozen);
/// What is wrong with the net and its trained part. @param expected the models that would do, in words
[[nodiscard]] diagnostics wrong_with_net(const method_setup& setup, const std::string& method,
                                         const std::string& expected);

/// Averages what is learnt (eq. 1). A frozen encoder is trained by open_task() of the method, sent to each client at
/// first contact, and part of what is evaluated.
class encoder_server : public averaging_server {
public:
  struct rules {
    bool frozen = true;               ///< Else the whole net is learnt, and the encoder of no use.
    std::optional<rng_key> sampled{}; ///< Tests read keyed samples of the embeddings instead of their means.
  };
  encoder_server(const parted_net& parts, const frozen_encoder::options& with, const rules& how);
  broadcast open_round(const round_place& place) override;
  [[nodiscard]] predictor predict() const override;
  [[nodiscard]] std::map<std::string, double> figures() const override;
  void persist(archive& state) override;

protected:
  [[nodiscard]] frozen_encoder& encoder() noexcept { return encoder_; }

private:
  frozen_encoder encoder_;
  rules rules_;
};

/// What an encoder has made of rows, as a memory holds it.
[[nodiscard]] embedding_rows on_host(const extract_output& encoded);
/// The name of what is remembered of a task: "features.1".
[[nodiscard]] std::string of_task(const std::string& name, std::uint32_t task);
/// Features and labels of a task's rows, as "KINDfeatures.1" and "KINDlabels.1".
void remember(tensor_map& memory, const std::string& kind, std::uint32_t task, const embedding_rows& rows);
/// The same; empty where nothing is remembered.
[[nodiscard]] embedding_rows recalled(const tensor_map& memory, const std::string& kind, std::uint32_t task);

} // namespace mneme

/// scenario: all settings of a run as values, which are validated once and then constant.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/options/keys.hpp"
#include <map>
#include <memory>
namespace mneme {

class model_kind;
class strategy;
struct device_profile;

enum class normalization { mean_std, unit, measured };
/// Axis of image arrays that holds the channels; automatic selects the axis of length 1 or 3.
enum class array_layout { automatic, channels_first, channels_last };
struct data_section {
  std::string name = "fashion-mnist";
  std::int64_t seed = -1; ///< See scenario::data_seed().
  std::filesystem::path root{};
  std::int64_t train_rows = 0, test_rows = 0;           ///< Uses the first n rows of the file; 0: all.
  std::int64_t train_per_class = 0, test_per_class = 0; ///< Of these, uses the first n rows of each class; 0: all.
  normalization normalize = normalization::mean_std;
  bool transposed = false;
  std::vector<std::int64_t> shape{64}; ///< Synthetic data: [features] or [channels, height, width].
  std::int64_t classes = 10;           ///< Synthetic data only.
  std::int64_t rows = 100'000;         ///< Synthetic data only.
  std::int64_t tokens = 0; ///< Vocabulary size. 0: pixels for synthetic data, the largest token + 1 for arrays.
  std::int64_t side = 224; ///< Side length in pixels for data sets in image folders; for folder, 0 keeps the size.
  // Data of the user:
  std::filesystem::path file{}; ///< Path of an array file, a folder of arrays, or a CSV table.
  std::string folder{};         ///< Image folder: its name below the root; "": the root itself.
  double test_share = 0.0;      ///< Share of each class used for testing if the data have no test part.
  std::int64_t channels = 0;    ///< Image folder: 1 (gray) or 3; 0: 1 if all images are gray, else 3.
  array_layout layout = array_layout::automatic;                                        ///< Arrays only.
  std::string label_column = "label", split_column = "split", domain_column = "domain"; ///< CSV tables.
  std::vector<std::string> ignore_columns{}; ///< CSV tables: columns to ignore.
  std::int64_t resize = 0;                   ///< Length in pixels of the shorter side after resizing; 0: no resizing.
  std::int64_t crop = 0;                     ///< Side length in pixels of the center crop; 0: no crop.
};

enum class task_kind { class_incremental, domain_incremental, single };
enum class task_transform { none, permute, affine, domains, class_blocks };
enum class task_transition { round, staggered };
using class_order_choice = std::variant<std::string, std::vector<std::int64_t>>;
struct tasks_section {
  task_kind kind = task_kind::class_incremental;
  std::int64_t count = 5;
  std::vector<std::int64_t> sizes{}; ///< Number of classes of each task; empty: `count` tasks of (nearly) equal size.
  std::int64_t first_classes = 0;
  std::int64_t classes = 0;
  class_order_choice class_order = std::string("natural");
  task_transform transform = task_transform::none;
  word_or_names domain_order = std::string("natural"); ///< Order of domains over tasks: "natural", "seeded" or a list.
  std::int64_t classes_per_task = 0;
  task_transition transition = task_transition::round;
  virtual_duration transition_spread{0}; ///< With staggered: each client's delay is uniform in [0, transition_spread].
  double keep_task_share = 0.0;          ///< Share of clients that keep their old task when a new one opens.
};

enum class partition_kind { dirichlet, iid, dirichlet_capped, balanced, shards, class_share, sampled, file };
struct partition_section {
  partition_kind kind = partition_kind::dirichlet;
  double beta = 0.5;
  double class_share = 0.6;
  std::int64_t shards_per_client = 2;
  std::int64_t rows_per_client = 50;
  bool per_run_seed = false;  ///< True for seed = "per-run".
  bool over_enrolled = false; ///< True for over = "enrolled"; a task's rows then go to clients enrolled in that task.
  double public_share = 0.0;  ///< Share of rows of each task and class that no client gets.
  std::filesystem::path file{};
};

enum class attack_kind { none, sign_flip, noise, label_flip };
struct clients_section {
  std::int64_t count = 20;
  byte_size memory_limit{}; ///< RAM limit for client memories; 0: no limit.
  attack_kind attack = attack_kind::none;
  double attackers = 0.0;    ///< Share of the clients that attack, drawn once per run.
  double attack_scale = 1.0; ///< sign-flip: factor of the update; noise: standard deviation.
};

enum class enrolment_kind { all, table, growing, random };
enum class rejoin_policy { with_memory, without_memory };
struct enrolment_section {
  enrolment_kind kind = enrolment_kind::all;
  std::vector<std::string> table{};
  std::int64_t initial = 10;
  std::int64_t added_per_task = 10;
  // Means of the exponential distributions of random enrollment.
  virtual_duration arrival_mean = std::chrono::minutes(10);
  virtual_duration lifetime_mean = std::chrono::hours(2);
  virtual_duration absence_mean{0}; ///< 0: clients that leave never return.
  rejoin_policy rejoin = rejoin_policy::with_memory;
};

enum class round_mode { sync, async };
enum class late_policy { drop, keep };
enum class aggregation_kind { fedbuff, fedasync };
enum class staleness_kind { polynomial, constant, hinge };
struct rounds_section {
  round_mode mode = round_mode::sync;
  std::int64_t per_task = 10; ///< Rounds; in asynchronous runs, server steps.
  std::int64_t cohort = 10;   ///< Number of clients per round. If the key is not given, min(10, clients.count).
  virtual_duration deadline{0};
  late_policy late = late_policy::drop;
  // Asynchronous runs only:
  aggregation_kind aggregation = aggregation_kind::fedbuff;
  std::int64_t buffer = 10;       ///< FedBuff: number of uploads per server step.
  std::int64_t concurrency = 100; ///< Number of clients in flight. If the key is not given, min(100, clients.count).
  staleness_kind staleness = staleness_kind::polynomial;
  double staleness_exponent = 0.5;
  std::int64_t staleness_bound = 4;
  double mixing = 0.6;               ///< FedAsync only.
  double server_learning_rate = 1.0; ///< FedBuff only.
};

enum class noise_place { server, client, tree };
enum class rounding_kind { stochastic, nearest };
enum class secure_aggregation_kind { none, masked };
/// Steps between a client's update and its fold at the server.
struct uploads_section {
  double clip_norm = 0.0;        ///< Maximum L2 norm of an update; 0: no limit.
  double noise_multiplier = 0.0; ///< Standard deviation of the noise, relative to clip_norm; 0: no noise.
  noise_place noise = noise_place::server;
  double delta = 1e-5;       ///< Delta of the reported (epsilon, delta)-differential privacy.
  double top_k = 1.0;        ///< Share of the entries that are sent; 1: all.
  std::int64_t quantise = 0; ///< Bits per sent value; 0: float32.
  rounding_kind rounding = rounding_kind::stochastic;
  bool error_feedback = false; ///< Adds the part that compression omitted to the client's next update.
  secure_aggregation_kind secure_aggregation = secure_aggregation_kind::none;

  [[nodiscard]] bool compresses() const noexcept { return top_k < 1.0 || quantise > 0; }
  [[nodiscard]] bool is_masked() const noexcept { return secure_aggregation == secure_aggregation_kind::masked; }
  /// True if the noise is added at the server's fold.
  [[nodiscard]] bool has_server_noise() const noexcept {
    return noise_multiplier > 0.0 && noise != noise_place::client;
  }
};

enum class aggregation_rule { mean, median, trimmed_mean, krum, multi_krum };
struct aggregation_section {
  aggregation_rule rule = aggregation_rule::mean;
  double trim = 0.2;          ///< Trimmed mean: share of the uploads that is cut at each end.
  std::int64_t byzantine = 0; ///< Krum: assumed number of attackers in a cohort.
  std::int64_t selected = 0;  ///< Multi-Krum: number of averaged uploads; 0: cohort minus `byzantine`.
};

enum class device_availability { always, diurnal, file };
enum class trace_end_rule { stop, repeat };
enum class wire_format { fp32, fp16, bf16, int8 };
struct devices_section {
  device_value rows_per_second = log_normal{2000.0, 0.5};
  device_value uplink_mbit = log_normal{10.0, 0.5};
  device_value downlink_mbit = log_normal{50.0, 0.5};
  device_value proxy_uplink_mbit = log_normal{10.0, 0.5};   ///< Link to the proxy, for methods that have a proxy.
  device_value proxy_downlink_mbit = log_normal{50.0, 0.5}; ///< Link from the proxy.
  bool observers_cost_time =
      true; ///< Clients outside the cohort need a download and virtual time to observe their rows.
  virtual_duration latency = std::chrono::milliseconds(50);
  double dropout = 0.0;
  device_availability availability = device_availability::always;
  virtual_duration availability_period = std::chrono::hours(24); ///< Diurnal availability only.
  std::filesystem::path availability_file{};
  wire_format transfer_dtype = wire_format::fp32;
  std::vector<profile_choice> profiles{};
  std::vector<std::shared_ptr<const device_profile>> profiles_read{}; ///< The profiles that `profiles` selects.
  std::filesystem::path capacity_file{}, link_file{};
  trace_end_rule trace_end = trace_end_rule::stop; ///< Behavior after the last span of a client's trace.
  virtual_duration trace_period{0}; ///< Period of repeated traces; 0: each trace repeats after its own end.
  double server_uplink_mbit = 0.0, server_downlink_mbit = 0.0; ///< Rates that all clients share; 0: unlimited.
};

enum class trainable_part { all, head, body, layers }; ///< [model] accepts only `all` and `head`.
struct model_section {
  std::string name = "mlp";
  std::filesystem::path module{}; ///< Module file (exported program) used as the net; empty: use `name`.
  bool module_scores = false;     ///< True: forward() returns class scores; false: features.
  bool module_training = true;    ///< True: training uses the layer modes stored in the file. False: all layers are in
                                  ///< evaluation mode.
  bool module_fused = true;       ///< True: a module whose operators all have a layer of mneme runs as these layers.
  bool native_code = false;       ///< True: modules are loaded without a probe if the system has no sandbox.
  std::filesystem::path weights{}, seed_weights{};
  std::filesystem::path backbone{}; ///< Scenario of a run that trains the initial weights; empty: none.
  trainable_part trainable = trainable_part::all;
  std::vector<std::string> frozen{};  ///< Parameters that are not trained: names of parameters or layers, or patterns
                                      ///< with *.
  std::shared_ptr<model_kind> kind{}; ///< Holds the model's own keys.
};

enum class optimizer_kind { sgd, adam, adamw };
enum class schedule_kind { constant, cosine, step };
enum class augmentation_kind { none, crop_flip, crop_flip_jitter, resized_crop_flip };
struct training_section {
  optimizer_kind optimizer = optimizer_kind::sgd;
  std::int64_t epochs = 1;
  std::int64_t batch = 64; ///< Rows per step; 0: full batch.
  double learning_rate = 0.05;
  schedule_kind schedule = schedule_kind::constant;
  std::vector<std::int64_t> milestones{};
  double factor = 0.1;
  double momentum = 0.0, weight_decay = 0.0, clip_norm = 0.0;
  augmentation_kind augment = augmentation_kind::none;
  double label_smoothing = 0.0; ///< Share of the target that is spread evenly over all classes of the loss.
  bool drop_last = false;       ///< Skips the last batch of an epoch if it is not full.
};

enum class upload_weighting { samples, uniform };
struct strategy_section {
  std::string name = "fedavg";
  std::string preset{};
  upload_weighting weighting = upload_weighting::samples;
  double old_model_share = 0.0; ///< Weight of the old model in the server step of averaging methods.
  bool oracle = false;
  std::shared_ptr<strategy> method{}; ///< Holds the method's own keys; prepared by the simulation.
};

enum class no_nodes_policy { local, wait }; ///< If no node is usable: compute locally, or wait for a node.
/// machine: the fastest kernels of this machine. portable: a fixed order of operations and fixed instructions (AVX2
/// with FMA) on every machine.
enum class arithmetic_kind { machine, portable };
struct worker_section {
  std::string device = "auto"; ///< "auto", "cpu" or "cuda:N".
  std::int64_t count = 0, fused_clients_max = 0, shards = 0;
  byte_size lookahead_memory{std::int64_t{1} << 30};
  no_nodes_policy no_nodes = no_nodes_policy::local;
  virtual_duration node_timeout = std::chrono::seconds(3); ///< Wall-clock time.
  virtual_duration join_timeout = std::chrono::minutes(5); ///< Wall-clock time.
  arithmetic_kind arithmetic = arithmetic_kind::machine;
  double verify_share = 0.0; ///< Share of the nodes' rounds that this process recomputes to verify their results.
};

enum class evaluation_mask { seen, all, task };
enum class personal_model { none, fine_tuned, local }; ///< See docs/metrics.md.
enum class personal_test_rows { held_out, classes };
enum class kept_models { last, tasks }; ///< Saves the net only at the end of the run, or also at the end of every task.
struct evaluation_section {
  std::int64_t every = 1; ///< Number of rounds or server steps.
  evaluation_mask mask = evaluation_mask::seen;
  std::vector<double> targets{}; ///< Accuracies in percent.
  bool fairness = false;
  personal_model personal = personal_model::none;
  personal_test_rows personal_rows = personal_test_rows::held_out;
  double personal_share = 0.2; ///< held_out: share of a client's training rows of each task that are kept for tests.
  std::int64_t personal_epochs = 1;
  kept_models models = kept_models::last;

  /// True if clients keep some of their training rows for tests.
  [[nodiscard]] bool holds_out_rows() const noexcept {
    return personal != personal_model::none && personal_rows == personal_test_rows::held_out;
  }
};

struct checkpoint_section {
  std::int64_t every = 1; ///< Number of rounds or server steps; 0: no checkpoints.
  bool force = false;
  std::int64_t keep = 2;
};

struct scenario {
  std::string title{};
  std::int64_t seed = 1;
  data_section data{};
  tasks_section tasks{};
  partition_section partition{};
  clients_section clients{};
  enrolment_section enrolment{};
  rounds_section rounds{};
  devices_section devices{};
  uploads_section uploads{};
  aggregation_section aggregation{};
  model_section model{};
  training_section training{};
  strategy_section strategy{};
  worker_section worker{};
  evaluation_section evaluation{};
  checkpoint_section checkpoint{};

  std::string name{};                              ///< Name of the scenario file without extension.
  std::map<std::string, std::string> key_places{}; ///< "section.key" -> "file:line:column", for keys of the user.
  std::string file{};                              ///< Path of the scenario file, as the user gave it.

  /// Seed of all random choices about the data: synthetic rows, test rows, orders, transforms, partition and held-out
  /// rows.
  [[nodiscard]] std::uint64_t data_seed() const noexcept {
    return static_cast<std::uint64_t>(data.seed < 0 ? seed : data.seed);
  }
  /// Location of `key` ("rounds.cohort") for diagnostics: "file:line:column" if the user gave it, else the file's path.
  [[nodiscard]] std::string where(const std::string& key) const;
};

} // namespace mneme

/// model: a layout of named parameters in one flat buffer, and forward and backward passes over K
/// models at once.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/kernels/scratch.hpp"
#include "runtime/models/parameter_choice.hpp"
#include "runtime/models/prompts.hpp"
#include "runtime/options/keys.hpp"
#include <ATen/core/Tensor.h>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

struct dense_layer;
struct function_mode;
struct function_results;

// Axes: K models in a fused group, P weights of a model, B rows of a step, D features, C classes.

/// One parameter: where it lies in the flat buffer, and how it is drawn.
struct parameter {
  std::string name{};                ///< As in files: "fc1.weight".
  std::vector<std::int64_t> shape{}; ///< In files, without K: [out, in], [out, in, h, w], [out].
  std::int64_t offset = 0;           ///< First element within [P].
  std::int64_t size = 0;
  bool head = false;   ///< Rows belong to classes, unless `whole`.
  bool whole = false;  ///< The parameter belongs to the head, and is one for all classes (the scale of a cosine head).
  bool buffer = false; ///< Running statistics: moved by training's forward passes, not by gradients.
  bool frozen = false; ///< Never trained.
  bool held = false;   ///< Frozen by model.frozen or by the module's file; `frozen` is true, too. Other parameters of
                       ///< its layer may be trained.
  // Drawn from U(-bound, bound) or N(0, deviation^2), whichever is not 0; else all `constant`.
  double bound = 0.0; ///< 1 / sqrt(fan in), as PyTorch's layers do.
  double deviation = 0.0;
  double constant = 0.0;
  std::vector<float> leading{}; ///< The first values, in the order of files, in place of drawn ones.
  /// In memory, the file's tensor seen as `view` has its axes in `order`; empty: as in files.
  std::vector<std::int64_t> view{}, order{};
};
/// The parameter's values within `flat` [P], in the shape that files have: a view where that is possible.
[[nodiscard]] at::Tensor as_in_files(const at::Tensor& flat, const parameter& entry);
/// Puts `values`, in the shape that files have, into their place in `flat` [P].
void put_as_in_files(at::Tensor& flat, const parameter& entry, const at::Tensor& values);
/// Marks the parameters `chosen` [layout] as held; those that are frozen already stay as they are.
void hold_parameters(std::vector<parameter>& layout, const std::vector<bool>& chosen);

/// What a forward pass keeps for the backward pass of the same rows, and memory that passes hand on
/// to each other. Reused from step to step.
struct tape {
  bool for_backward = true;        ///< Set to false before passes that no backward pass follows: they need less memory.
  std::vector<std::string> maps{}; ///< Those of model::maps() that forward() is to show; set before it.
  std::vector<at::Tensor> d_maps{}; ///< A loss's gradients by them; set before backward(), which clears it.
  /// [K, B, classes] or undefined: a gradient by logits that changes the head only; set before backward(), which clears
  /// it.
  at::Tensor d_head_logits{};
  // The net's own business:
  bool training = false; ///< Mode of the last forward pass.
  kernels::scratch memory{};
  std::vector<at::Tensor> values{}, kept{}, gradients{}, spare{};
};

/// What training does in a forward pass and evaluation does not: layers use the statistics of the step's
/// rows, which all count, and move their running statistics in the weights; dropout draws its masks.
struct training_mode {
  std::span<const rng_key> streams{}; ///< [K] one per model, of this step; read by nets that draw.
  const parameter_choice* trained =
      nullptr;                       ///< What is trained; layers without any of it are in evaluation mode. Null: all.
  std::int64_t statistics_moves = 1; ///< How often running statistics move, by the same statistics each time.
};

struct activations {
  at::Tensor features{}; ///< [K, B, D]: what the head reads, or the net's own choice (means and log deviations)
  at::Tensor logits{};   ///< [K, B, classes.size()]; undefined where a model has no head
  std::vector<at::Tensor> maps{}; ///< [K, B, C, height, width] each: what the tape has asked for
};

/// Where a backward pass leaves its gradients: in a buffer of their own, or, for a step of plain SGD,
/// added to the weights at once.
struct gradient_sink {
  at::Tensor& into;   ///< [K, P]
  float scale = 1.0F; ///< What every gradient is multiplied by.
  bool add = false;   ///< Added to what is there, instead of replacing it.
};

/// Const, shared by all threads. The bits of model k's results never depend on K or on the others.
class model {
public:
  virtual ~model() = default;
  [[nodiscard]] virtual const std::vector<parameter>& layout() const noexcept = 0;
  [[nodiscard]] std::int64_t size() const noexcept;                      ///< P
  [[nodiscard]] virtual std::int64_t feature_width() const noexcept = 0; ///< D
  [[nodiscard]] virtual std::int64_t classes() const noexcept = 0;       ///< Rows of the head; 0: no head.
  /// Equal for nets that compute the same thing: part of the fuse key ("mlp 784-200-100-10").
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Bytes that one model of a fused group touches per step of `rows`: decides the width.
  [[nodiscard]] virtual std::int64_t working_set(std::int64_t rows) const = 0;

  /// True if results of a row depend on the others of its step (batch norm): such nets are never padded.
  [[nodiscard]] virtual bool mixes_rows() const noexcept { return false; }
  /// True if, on a CPU and in evaluation mode, a row's bits may depend on how many rows its pass has: LibTorch's
  /// products choose their way by that, our own kernels do not. A pass to logits of `classes`; of none, to features.
  [[nodiscard]] virtual bool depends_on_row_count(class_range /*classes*/) const noexcept { return true; }
  /// The layers of a net that is fully connected ones from the input to a linear head and nothing else; of others null.
  [[nodiscard]] virtual const std::vector<dense_layer>* dense_layers() const noexcept { return nullptr; }
  /// True if training draws random numbers (dropout).
  [[nodiscard]] virtual bool draws() const noexcept { return false; }

  /// Forward over `weights` [K, P] (or [1, P], shared by all K) and `inputs` [K, B, channels, H, W]
  /// float32; logits of `classes` only; of none, the pass ends at the features. Keeps in `keep` what backward() needs,
  /// unless null. Rows of `weights` are contiguous, however far apart they lie. Without `training` the net is in
  /// evaluation mode; with it, running statistics in `weights` are moved. What is returned may share memory with
  /// `keep`.
  [[nodiscard]] virtual activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                            tape* keep, const training_mode* training = nullptr) const = 0;
  /// Writes the gradient of the loss into `out`: every element that can change is written once; rows
  /// of the head outside `classes` are left as they are. `d_features` [K, B, D] adds a loss on
  /// features; undefined: none. `d_logits` is undefined where the pass was over no classes. `trained` is what the
  /// forward pass was told: other parameters are not written, and the gradient ends where none of it lies before. A
  /// sink that is the weights themselves is legal: each weight is read for the last time before it is written.
  virtual void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                        const at::Tensor& d_features, const parameter_choice& trained,
                        const gradient_sink& out) const = 0;

  /// The same net as a function of LibTorch's operators, which autograd follows to any order: results equal
  /// forward()'s, gradients backward()'s, up to rounding. `weights` [K, P] (or [1, P], shared by all K) and `inputs`
  /// [K, B, channels, H, W] of one type, float32 or float64; neither is changed, running statistics included. On a
  /// CPU a model's bits depend neither on K nor on the others.
  [[nodiscard]] virtual function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                        class_range classes, const function_mode& mode) const = 0;
  /// Names of the maps that differentiable() shows, in their order, and that forward() can: "layer1" of a residual net.
  [[nodiscard]] virtual std::vector<std::string> maps() const { return {}; }
  /// A copy of the net in which the parameters `chosen` [layout] are frozen, running statistics among them; those that
  /// are frozen already stay so. Null if the net cannot freeze single parameters.
  [[nodiscard]] virtual std::shared_ptr<const model> with_frozen(const std::vector<bool>& /*chosen*/) const {
    return nullptr;
  }
};
using model_ref = std::shared_ptr<const model>;

/// What a parameter is drawn as, in the shape that files have, float32.
[[nodiscard]] at::Tensor initial_values(const parameter& entry, std::uint64_t seed);
/// Initial weights [P] float32, one keyed stream per parameter: they do not depend on the layout's order.
[[nodiscard]] at::Tensor initial_weights(const model& net, std::uint64_t seed);

/// What the last layer computes: x W^T + b, or s cos(x, W_c) with a learnt scale s (Gidaris and Komodakis 2018). None:
/// the net ends at its features. Proxies: several directions of a class, of which a softmax takes the nearest
/// (proxy_head.hpp).
enum class head_kind : std::uint8_t { linear, cosine, proxies, none };
/// A head: hidden layers with ReLU, which are one for all classes, then a row per class.
struct head_shape {
  head_kind kind = head_kind::linear;
  std::vector<std::int64_t> hidden{}; ///< Widths of its hidden layers.
  std::int64_t proxies = 10;          ///< Directions of a class: head_kind::proxies.
  bool signed_features = false;       ///< Nets that can end without a ReLU before the head do.
};

/// A kind of model with its own keys: made by the scenario reader, built when the data are known.
class model_kind {
public:
  virtual ~model_kind() = default;
  /// The method's choice; before build().
  void use_head(head_kind kind) { head_.kind = kind; }
  /// The same: proxies of a class, of a head of proxies.
  void use_proxies(std::int64_t count) { head_.proxies = count; }
  /// The same: features may be negative where the net can do so.
  void use_signed_features(bool are_signed) { head_.signed_features = are_signed; }
  /// The classes of each task of the run, for nets that have parts by task. Before build().
  void use_tasks(std::vector<class_range> classes) { tasks_ = std::move(classes); }
  /// The method's choice: a vision transformer is frozen, and its attention reads prompts (prompted_vit.hpp) or has
  /// low-rank parts (low_rank_vit.hpp). Others cannot, and are built without. Before build().
  void use_prompts(prompt_shape prompts) { prompts_ = std::move(prompts); }
  /// How many tokens the data set has, whose rows hold tokens; 0: it holds images. Before build().
  void use_tokens(std::int64_t count) { tokens_ = count; }
  /// True if rows of its inputs are tokens.
  [[nodiscard]] virtual bool reads_tokens() const { return false; }
  /// Binds the model's own keys of [model].
  virtual void keys(key_table&) {}
  /// @param shape C, H, W of the inputs. Fails, in words without a place, where the net cannot take them.
  [[nodiscard]] virtual tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                                   std::int64_t classes) const = 0;

protected:
  [[nodiscard]] const head_shape& head() const { return head_; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<class_range>& tasks() const { return tasks_; }
  [[nodiscard]] const prompt_shape& prompts() const { return prompts_; }
  /// Binds the keys that all nets with a head have.
  void head_keys(key_table& table);

private:
  head_shape head_{};
  std::int64_t tokens_ = 0;
  std::vector<class_range> tasks_{};
  prompt_shape prompts_{};
};

struct model_entry {
  std::string name{};
  std::string summary{};
  std::unique_ptr<model_kind> (*make)() = nullptr;
};
/// `const model_registration line{{.name = "mlp", .summary = "...", .make = ...}};`
struct model_registration {
  explicit model_registration(model_entry entry);
};
[[nodiscard]] std::vector<model_entry> models(); ///< Sorted by name.

} // namespace mneme

/// model: a layout of named parameters in one flat buffer, and passes over K models together.
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

/// One parameter: its location in the flat buffer and its initial distribution.
struct parameter {
  std::string name{};                ///< Name in files, such as "fc1.weight".
  std::vector<std::int64_t> shape{}; ///< Shape in files, without K: [out, in], [out, in, h, w], [out].
  std::int64_t offset = 0;           ///< First element within [P].
  std::int64_t size = 0;
  bool head = false;   ///< true: its rows belong to classes, except if `whole` is set.
  bool whole = false;  ///< true: a parameter of the head that all classes share, such as the scale of a cosine head.
  bool buffer = false; ///< true: running statistics, updated by training's forward passes, not by gradients.
  bool frozen = false; ///< true: never trained.
  bool held = false;   ///< true: frozen by model.frozen or by the module's file. Other parameters of the layer may be
                       ///< trained.
  // Drawn from N(0, deviation^2) if deviation > 0, else from U(-bound, bound) if bound > 0, else `constant`.
  double bound = 0.0; ///< The bound is 1 / sqrt(fan in) for PyTorch's layers.
  double deviation = 0.0;
  double constant = 0.0;
  std::vector<float> leading{}; ///< These values replace the first drawn ones, in the order of files.
  /// Order in memory: the file's tensor in the shape `view`, with its axes permuted by `order`. Empty: as in files.
  std::vector<std::int64_t> view{}, order{};
};
/// Returns the parameter's values in `flat` [P], in the shape of files; a view if possible.
[[nodiscard]] at::Tensor as_in_files(const at::Tensor& flat, const parameter& entry);
/// Stores `values`, in the shape of files, as the parameter's values in `flat` [P].
void put_as_in_files(at::Tensor& flat, const parameter& entry, const at::Tensor& values);
/// Freezes the parameters `chosen` [layout] and marks them as held; parameters that are frozen already do not change.
void hold_parameters(std::vector<parameter>& layout, const std::vector<bool>& chosen);

/// Values that a forward pass saves for the backward pass of the same rows, and buffers that all steps reuse.
struct tape {
  bool for_backward = true; ///< Set to false before a pass without a backward pass, which then needs less memory.
  std::vector<std::string> maps{};  ///< Names of model::maps() that forward() returns; set before forward().
  std::vector<at::Tensor> d_maps{}; ///< Gradients with respect to `maps`; set before backward(), which clears it.
  /// [K, B, classes] or undefined: gradient with respect to the logits that changes the head only. Set before
  /// backward(), which clears it.
  at::Tensor d_head_logits{};
  // Internal state of the net.
  bool training = false; ///< Mode of the last forward pass.
  kernels::scratch memory{};
  std::vector<at::Tensor> values{}, kept{}, gradients{}, spare{};
};

/// Settings of a forward pass during training. Layers normalize with the statistics of all rows of the step and update
/// the running statistics in the weights; dropout draws its masks.
struct training_mode {
  std::span<const rng_key> streams{}; ///< [K] random streams of this step, one per model; read by nets that draw.
  const parameter_choice* trained =
      nullptr; ///< Trained parameters; a layer with none of them is in evaluation mode. Null: all parameters.
  std::int64_t running_stats_updates = 1; ///< Updates of the running statistics per pass, all with the same statistics.
};

/// Results of model::forward().
struct activations {
  at::Tensor features{};          ///< [K, B, D]: the head's input, or a value that the net marks as its features
  at::Tensor logits{};            ///< [K, B, classes.size()]; undefined if the net has no head
  std::vector<at::Tensor> maps{}; ///< [K, B, C, height, width] each: tape::maps in order
};

/// Destination of a backward pass: a buffer of gradients or, in a step of plain SGD, the weights themselves.
struct gradient_sink {
  at::Tensor& into;   ///< [K, P]
  float scale = 1.0F; ///< Factor of every gradient.
  bool add = false;   ///< true: gradients are added to `into`; false: they replace its values.
};

/// A net without weights. Immutable, shared by all threads. The bits of model k's results depend neither on K nor on
/// the other models.
class model {
public:
  virtual ~model() = default;
  /// Parameters in the order of their offsets.
  [[nodiscard]] virtual const std::vector<parameter>& layout() const noexcept = 0;
  [[nodiscard]] std::int64_t size() const noexcept;                      ///< P
  [[nodiscard]] virtual std::int64_t feature_width() const noexcept = 0; ///< D
  [[nodiscard]] virtual std::int64_t classes() const noexcept = 0;       ///< Classes of the head; 0: no head.
  /// Text that is equal for nets that compute the same function ("mlp 784-200-100-10"); part of the fuse key.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Bytes that one model touches in a step of `rows` rows; it determines how many models are fused.
  [[nodiscard]] virtual std::int64_t working_set(std::int64_t rows) const = 0;

  /// True if a row's results depend on the other rows of its step (batch normalization). Such nets get no padded rows.
  [[nodiscard]] virtual bool couples_batch_rows() const noexcept { return false; }
  /// True if, on a CPU and in evaluation mode, a row's bits may depend on the number of rows. This is the case for
  /// LibTorch's products, which choose their algorithm by this number. @param classes classes of the pass; empty: the
  /// pass ends at the features
  [[nodiscard]] virtual bool depends_on_row_count(class_range /*classes*/) const noexcept { return true; }
  /// The layers of a net that consists of fully connected layers and a linear head only; null for other nets.
  [[nodiscard]] virtual const std::vector<dense_layer>* dense_layers() const noexcept { return nullptr; }
  /// True if training draws random numbers, as for dropout.
  [[nodiscard]] virtual bool uses_random_numbers() const noexcept { return false; }

  /// Forward pass of K models.
  /// @param weights [K, P], or [1, P] shared by all K; each row is contiguous
  /// @param inputs [K, B, channels, H, W] float32
  /// @param classes classes whose logits are computed; empty: the pass ends at the features
  /// @param keep receives the data for backward(), unless null; results may share its memory
  /// @param training null: evaluation mode; otherwise the running statistics in `weights` are updated
  [[nodiscard]] virtual activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                            tape* keep, const training_mode* training = nullptr) const = 0;
  /// Writes the gradients of the loss to `out`. Each element that can change is written once. Head rows outside
  /// `classes` keep their values.
  /// @param d_logits undefined if the forward pass had no classes
  /// @param d_features [K, B, D] gradient with respect to the features; undefined: none
  /// @param trained trained parameters, as in the forward pass; other parameters are not written, and layers before the
  /// first trained parameter are skipped
  /// @param out may be the weights themselves: each weight is read for the last time before it is written
  virtual void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                        const at::Tensor& d_features, const parameter_choice& trained,
                        const gradient_sink& out) const = 0;

  /// The net as a function of LibTorch's operators, which autograd can differentiate to any order. Results equal those
  /// of forward(), and gradients those of backward(), up to rounding. On a CPU a model's bits depend neither on K nor
  /// on the other models.
  /// @param weights [K, P], or [1, P] shared by all K; not changed, not even running statistics
  /// @param inputs [K, B, channels, H, W] of the weights' dtype, float32 or float64
  [[nodiscard]] virtual function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                        class_range classes, const function_mode& mode) const = 0;
  /// Names of the intermediate maps that differentiable() returns, in order, and forward() on request ("layer1" of a
  /// residual net).
  [[nodiscard]] virtual std::vector<std::string> maps() const { return {}; }
  /// Returns a copy of the net in which the parameters `chosen` [layout] are frozen in addition to those that are
  /// frozen already. Running statistics may be among them. Null if the net cannot freeze single parameters.
  [[nodiscard]] virtual std::shared_ptr<const model> with_frozen(const std::vector<bool>& /*chosen*/) const {
    return nullptr;
  }
};
using model_ref = std::shared_ptr<const model>;

/// Draws a parameter's initial values, float32 in the shape of files. The random stream is keyed by the parameter's
/// name.
[[nodiscard]] at::Tensor initial_values(const parameter& entry, std::uint64_t seed);
/// Draws initial weights [P] float32. Each parameter has its own stream, so values do not depend on the layout's order.
[[nodiscard]] at::Tensor initial_weights(const model& net, std::uint64_t seed);

/// Last layer of a net. linear: x W^T + b. cosine: s cos(x, W_c) with a trained scale s (Gidaris and Komodakis 2018).
/// proxies: several directions per class, combined by a softmax (proxy_head.hpp). none: the net ends at its features.
enum class head_kind : std::uint8_t { linear, cosine, proxies, none };
/// A head: hidden layers with ReLU that all classes share, then one output per class.
struct head_shape {
  head_kind kind = head_kind::linear;
  std::vector<std::int64_t> hidden{}; ///< Widths of its hidden layers.
  std::int64_t proxies = 10;          ///< Directions per class of head_kind::proxies.
  bool signed_features = false;       ///< true: no ReLU before the head, in nets that support it.
};

/// A kind of model with its scenario keys. The scenario reader creates it; build() runs when the data set is loaded.
class model_kind {
public:
  virtual ~model_kind() = default;
  /// Sets the kind of head, which the method chooses. Call before build().
  void set_head(head_kind kind) { head_.kind = kind; }
  /// Sets the number of directions per class of head_kind::proxies. Call before build().
  void set_proxies(std::int64_t count) { head_.proxies = count; }
  /// Sets whether features may be negative, in nets that support it. Call before build().
  void set_signed_features(bool are_signed) { head_.signed_features = are_signed; }
  /// Sets the classes of each task, for nets with parts for each task. Call before build().
  void set_tasks(std::vector<class_range> classes) { tasks_ = std::move(classes); }
  /// Freezes a vision transformer and adds prompts (prompted_vit.hpp) or low-rank adapters (low_rank_vit.hpp) to its
  /// attention. Other nets ignore this call. Call before build().
  void set_prompts(prompt_shape prompts) { prompts_ = std::move(prompts); }
  /// Sets the number of distinct tokens in the data set; 0: the data set has images. Call before build().
  void set_tokens(std::int64_t count) { tokens_ = count; }
  /// True if the net's input rows are tokens.
  [[nodiscard]] virtual bool reads_tokens() const { return false; }
  /// Declares the model's own keys of section [model].
  virtual void keys(key_table&) {}
  /// Builds the net. @param shape C, H, W of the inputs. Fails with a text without file and line if the net cannot read
  /// such inputs.
  [[nodiscard]] virtual tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                                   std::int64_t classes) const = 0;

protected:
  [[nodiscard]] const head_shape& head() const { return head_; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<class_range>& tasks() const { return tasks_; }
  [[nodiscard]] const prompt_shape& prompts() const { return prompts_; }
  /// Declares the keys that all nets with a head share.
  void head_keys(key_table& table);

private:
  head_shape head_{};
  std::int64_t tokens_ = 0;
  std::vector<class_range> tasks_{};
  prompt_shape prompts_{};
};

/// Name, summary and factory of a kind of model.
struct model_entry {
  std::string name{};
  std::string summary{};
  std::unique_ptr<model_kind> (*make)() = nullptr;
};
/// Registers a kind of model: `const model_registration line{{.name = "mlp", .summary = "...", .make = ...}};`
struct model_registration {
  explicit model_registration(model_entry entry);
};
[[nodiscard]] std::vector<model_entry> models(); ///< All registered kinds, sorted by name.

} // namespace mneme

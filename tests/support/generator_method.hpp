/// generator_method: method in one file that uses programs in every way. Its server trains conditional generators
/// through the frozen net, with labels and batch statistics, in slices. Generated rows are sent to the clients. They
/// train on these and on their own rows, and then refine their weights by a program that is stacked over clients.
#pragma once
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "strategies/shared/averaging.hpp"
#include <ATen/ATen.h>
#include <atomic>
#include <numeric>
namespace mneme::test {

// Axes: K calls of a batch; N images of a call; Z latent size; G weights of a generator; P weights of the net; C
// classes, D pixels of an image; B rows.

/// Two layers: ReLU(W1 (z, one-hot label) + b1), then tanh(W2 h + b2).
class conditional_generator {
public:
  conditional_generator(std::array<std::int64_t, 3> shape, std::int64_t classes)
      : shape_(shape), classes_(classes), pixels_(shape[0] * shape[1] * shape[2]) {}
  static constexpr std::int64_t latent = 8, hidden = 16;
  [[nodiscard]] std::int64_t size() const { return hidden * (latent + classes_ + 1) + pixels_ * (hidden + 1); }

  /// Initial weights [G], uniform in [-0.25, 0.25).
  [[nodiscard]] at::Tensor initial(const rng_key& key) const {
    auto made = at::empty({size()}, at::kFloat);
    rng_stream draw(key);
    for (std::int64_t i = 0; i < size(); ++i)
      made.mutable_data_ptr<float>()[i] = static_cast<float>(draw.uniform(-0.25, 0.25));
    return made;
  }
  /// Labels 0, 1, ... in turn, [N]; codes are [N, Z + C].
  [[nodiscard]] at::Tensor labels(std::int64_t images) const { return at::arange(images, at::kLong) % classes_; }
  [[nodiscard]] at::Tensor codes(std::int64_t images, const rng_key& key) const {
    auto made = at::zeros({images, latent + classes_}, at::kFloat);
    rng_stream draw(key);
    for (std::int64_t i = 0; i < images; ++i) {
      auto* const row = made.mutable_data_ptr<float>() + i * (latent + classes_);
      for (std::int64_t z = 0; z < latent; ++z)
        row[z] = static_cast<float>(draw.normal());
      row[latent + i % classes_] = 1.0F;
    }
    return made;
  }
  /// Maps flat [K, G] and codes [K, N, Z + C] to images [K, N, channels, height, width] in [-1, 1].
  [[nodiscard]] at::Tensor images(const at::Tensor& flat, const at::Tensor& codes) const {
    const auto K = flat.size(0), in = latent + classes_;
    const auto parts = at::split_with_sizes(flat, {hidden * in, hidden, pixels_ * hidden, pixels_}, 1);
    const auto first = stacked_product(codes, parts[0].reshape({K, hidden, in})) + parts[1].unsqueeze(1);
    const auto h = by_element(first, at::relu);
    const auto second = stacked_product(h, parts[2].reshape({K, pixels_, hidden})) + parts[3].unsqueeze(1);
    return by_element(second, at::tanh).reshape({K, codes.size(1), shape_[0], shape_[1], shape_[2]});
  }

private:
  std::array<std::int64_t, 3> shape_;
  std::int64_t classes_, pixels_;
};

inline at::Tensor stacked(std::span<const program_call> calls,
                          const std::function<at::Tensor(const program_call&)>& of) {
  std::vector<at::Tensor> values;
  for (const auto& call : calls)
    values.push_back(of(call));
  return at::stack(values);
}

/// Cross-entropy summed over the rows of a call and over calls.
inline at::Tensor summed_loss(const at::Tensor& logits, const at::Tensor& labels) {
  return -at::log_softmax(logits, -1).gather(-1, labels.unsqueeze(-1)).sum(-2).sum();
}

/// Counts the slices of all programs, for tests that interrupt a run between two slices.
struct slice_counter {
  inline static std::atomic<std::int64_t> slices = 0;
  inline static std::atomic<std::int64_t> interrupts_after = -1; // -1: never
  inline static std::atomic<int> interrupts = 0;
  static void count() {
    if (++slices == interrupts_after)
      interrupts = 1;
  }
};

/// Minimizes sum CE(net(G(z, y)), y) / N + sum over batch norms |mean - running|^2 + |variance - running|^2 (Yin et al.
/// 2020, eq. 4) over the generator's weights, with a fixed number of steps per slice.
class generator_training final : public program {
public:
  generator_training(model_ref net, conditional_generator generator, std::int64_t images)
      : net_(std::move(net)), generator_(generator), images_(images) {}
  static constexpr std::int64_t slices = 3, steps_of_slice = 2;

  [[nodiscard]] std::string name() const override { return "generator training"; }
  [[nodiscard]] std::string identity() const override { return net_->identity() + " " + std::to_string(images_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "generator", .shape = {generator_.size()}}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override { return 1 << 16; }
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    slice_counter::count();
    const auto K = static_cast<std::int64_t>(calls.size());
    auto weights = stacked(
        calls, [&](const program_call& call) { return (call.slice == 0 ? call.in : call.state).at("generator"); });
    const auto net = stacked(calls, [](const program_call& call) { return call.in.at(flat_weights); }); // [K, P]
    const auto labels = generator_.labels(images_).to(net.device()).expand({K, images_});
    for (std::int64_t step = 0; step < steps_of_slice; ++step) {
      const auto codes = stacked(calls, [&](const program_call& call) {
        auto key = call.stream;
        key.index = static_cast<std::uint64_t>(1 + call.slice * steps_of_slice + step);
        return generator_.codes(images_, key).to(call.device());
      });
      const auto moving = leaf_of(weights);
      const auto seen = net_->differentiable(net, generator_.images(moving, codes), {0, net_->classes()},
                                             {.training = nullptr, .statistics = true});
      auto loss = summed_loss(seen.logits, labels) / static_cast<double>(images_);
      for (const auto& layer : seen.statistics)
        loss = loss + ((layer.mean - layer.running_mean).square().sum(-1) +
                       (layer.variance - layer.running_variance).square().sum(-1))
                          .sum();
      weights = weights - 0.05 * gradients_of(loss, {moving})[0];
    }
    std::vector<slice_result> made;
    for (std::int64_t k = 0; k < K; ++k) {
      const auto done = calls[static_cast<std::size_t>(k)].slice + 1;
      made.push_back({.tensors = {{"generator", weights[k]}},
                      .finished = done == slices,
                      .progress = static_cast<double>(done) / slices});
    }
    return made;
  }

private:
  model_ref net_;
  conditional_generator generator_;
  std::int64_t images_;
};

/// Images of a trained generator, as bytes or as normalized input of nets.
class generation final : public looped_program {
public:
  generation(conditional_generator generator, std::array<std::int64_t, 3> shape, std::int64_t images, bool as_bytes)
      : generator_(generator), shape_(shape), images_(images), as_bytes_(as_bytes) {}
  [[nodiscard]] std::string name() const override { return "generation"; }
  [[nodiscard]] std::string identity() const override { return std::to_string(images_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "images",
             .shape = {images_, shape_[0], shape_[1], shape_[2]},
             .type = as_bytes_ ? at::kByte : at::kFloat},
            {.name = "labels", .shape = {images_}, .type = at::kLong}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    const auto codes = generator_.codes(images_, call.stream).to(call.device()).unsqueeze(0);
    const auto images = generator_.images(call.in.at("generator").unsqueeze(0), codes)[0];
    const auto shown = as_bytes_ ? ((images + 1.0) * 127.5).round().to(at::kByte) : images;
    return {.tensors = {{"images", shown}, {"labels", generator_.labels(images_).to(call.device())}}};
  }

private:
  conditional_generator generator_;
  std::array<std::int64_t, 3> shape_;
  std::int64_t images_;
  bool as_bytes_;
};

/// Two steps per client, one per slice, that minimize the entropy of the net's predictions on `rows` of the client's
/// rows; stacked.
class polishing final : public program {
public:
  polishing(model_ref net, std::int64_t rows) : net_(std::move(net)), rows_(rows) {
    for (const auto& entry : net_->layout())
      moves_.push_back(at::full({entry.size}, entry.buffer ? 0.0 : 0.01));
  }
  [[nodiscard]] std::string name() const override { return "polishing"; }
  [[nodiscard]] std::string identity() const override { return net_->identity() + " " + std::to_string(rows_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = flat_weights, .shape = {net_->size()}}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override { return 1 << 16; }
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    slice_counter::count();
    const auto weights = stacked(
        calls, [](const program_call& call) { return (call.slice == 0 ? call.in : call.state).at(flat_weights); });
    const auto rows = stacked(calls, [&](const program_call& call) {
      std::vector<std::int64_t> positions; // repeated if the client has fewer rows
      for (std::int64_t i = 0; i < rows_; ++i)
        positions.push_back(i % call.samples.size());
      return call.images(positions);
    });
    const auto moving = leaf_of(weights);
    const auto seen = net_->differentiable(moving, rows, {0, net_->classes()}, {});
    const auto logs = at::log_softmax(seen.logits, -1), shares = at::softmax(seen.logits, -1);
    const auto gradients = gradients_of(-(shares * logs).sum(-1).sum(-1).sum(), {moving})[0];
    const auto moved = weights - at::cat(moves_).to(weights.device()) * gradients;
    std::vector<slice_result> made;
    for (std::int64_t k = 0; k < weights.size(0); ++k)
      made.push_back({.tensors = {{flat_weights, moved[k]}},
                      .finished = calls[static_cast<std::size_t>(k)].slice == 1,
                      .progress = 0.5});
    return made;
  }

private:
  model_ref net_;
  std::int64_t rows_;
  std::vector<at::Tensor> moves_;
};

class dreaming;

class dreaming_server final : public averaging_server {
public:
  dreaming_server(const dreaming& method, const method_setup& setup) : averaging_server(setup), method_(method) {}
  broadcast open_round(const round_info& info) override {
    auto made = averaging_server::open_round(info);
    made.extra = dreams_;
    return made;
  }
  task<void> close_round(server_context& ctx, const round_info& info) override;
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(dreams_);
  }

private:
  const dreaming& method_;
  tensors_ref dreams_{}; // images and labels; null before the first generation
};

class dreaming final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.integer("images", images_, {.low = 1}, "Images that each of two generators makes in a round.");
    table.flag("as_bytes", as_bytes_, "They are uint8, not float32.");
  }
  [[nodiscard]] method_needs needs() const override { return {}; } // several jobs per round
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    const conditional_generator generator(setup.shape, setup.classes);
    training_ = std::make_shared<const generator_training>(setup.net, generator, 12);
    generation_ = std::make_shared<const generation>(generator, setup.shape, images_, as_bytes_);
    polishing_ = std::make_shared<const polishing>(setup.net, 4);
    for (std::uint32_t g = 0; g < 2; ++g)
      untrained_.push_back(generator.initial(generator_stream(setup, {}, g)));
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    auto own = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
    if (in.extra) {
      auto replay = own;
      replay.samples = ctx.rows_of(in.extra->at("images"), in.extra->at("labels"));
      replay.options.classes = {0, setup().classes};
      auto replaying = ctx.train(std::move(replay));
      auto replayed = co_await replaying;
      own.start = replayed.weights;
    }
    auto training = ctx.train(std::move(own));
    auto trained = co_await training;
    if (ctx.samples().size() == 0)
      co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = 0};
    auto polishing = ctx.run({.body = polishing_, .in = trained.weights, .samples = ctx.samples(), .rows = 4});
    auto polished = co_await polishing;
    co_return client_result{.upload = polished.out, .memory = nullptr, .rows = trained.rows_seen};
  }
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<dreaming_server>(*this, setup());
  }

  [[nodiscard]] static rng_key generator_stream(const method_setup& setup, round_id round, std::uint32_t generator) {
    return {.seed = setup.seed, .purpose = first_method_purpose + 7 + round.value, .visit = generator};
  }
  [[nodiscard]] program_job training_job(const at::Tensor& weights, round_id round, std::uint32_t generator) const {
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, weights);
    in->put("generator", untrained_[generator]);
    return {.body = training_, .in = in, .stream = generator_stream(setup(), round, generator)};
  }
  [[nodiscard]] program_job generation_job(const tensors_ref& trained, round_id round, std::uint32_t generator) const {
    return {.body = generation_, .in = trained, .stream = generator_stream(setup(), round, generator)};
  }

private:
  std::int64_t images_ = 8;
  bool as_bytes_ = true;
  std::shared_ptr<const program> training_, generation_, polishing_;
  std::vector<at::Tensor> untrained_; // two generators [G]
};

inline task<void> dreaming_server::close_round(server_context& ctx, const round_info& info) {
  average();
  auto first = ctx.run(method_.training_job(weights(), info.round, 0));
  auto second = ctx.run(method_.training_job(weights(), info.round, 1));
  auto training = first & second;
  auto trained = co_await training;
  auto from_first = ctx.run(method_.generation_job(std::get<0>(trained).out, info.round, 0));
  auto from_second = ctx.run(method_.generation_job(std::get<1>(trained).out, info.round, 1));
  auto generating = from_first & from_second;
  auto made = co_await generating;
  auto dreams = std::make_shared<tensor_map>();
  for (const auto* name : {"images", "labels"})
    dreams->put(name, at::cat({std::get<0>(made).out->at(name), std::get<1>(made).out->at(name)}));
  dreams_ = dreams;
}

inline const strategy_registration dreaming_line{
    {.name = "dreaming", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<dreaming>();
     }}};

} // namespace mneme::test

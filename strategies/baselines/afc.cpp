// AFC: M. Kang, J. Park and B. Han, "Class-Incremental Learning by Knowledge Distillation with Adaptive Feature
// Consolidation", CVPR 2022. AFC uses PODNet's proxies and NCA loss. It distills feature maps and weights every channel
// by its importance I for the loss. With n classes seen and s new ones:
//     L = NCA(z, y) + distillation sqrt(n / s) mean over stages l of mean over channels c of I_lc |u_lc - v_lc|.
// u_lc is the vector of squared values of a student's channel, divided by its length (proxy_rehearsal.hpp); v_lc is the
// same for the teacher. Importance is computed at the end of a task, after the head was tuned: I_lc is the mean over
// rows of the sum over pixels of (d NCA / d map_lc)^2, divided by its mean over the channels of the stage. The formula
// in the paper weights squared distances of the maps instead.
//
// The official code computes the formula above. It measures importance in training mode from gradients of batch means,
// so rows of smaller batches have more weight.
//
// Ours: federated as described in rehearsal.hpp. In the last round of a task, each participating client measures
// importance on its rows without augmentation, in evaluation mode, with equal weights. It measures its own trained
// model, or the received model with importance = "received". The server averages the importances and sends them with
// the teacher. Before the first measurement, all channels have weight 1.
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "strategies/baselines/proxy_rehearsal.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
namespace mneme::afc_method {
namespace {

enum class measured_model : std::uint8_t { own, received };
struct options {
  double distillation = 4.0;
  measured_model importance = measured_model::own;
};

std::string importance_name(const std::string& map) { return "importance." + map; }

// -- importance -------------------------------------------------------------------------------------------------------

/// Measures the importance of every channel of every map on the job's rows: [channels] per map, with mean 1.
class importance_program final : public looped_program {
public:
  /// @param channels channel count of each map
  importance_program(model_ref net, std::vector<std::string> maps, std::vector<std::int64_t> channels)
      : net_(std::move(net)), maps_(std::move(maps)), channels_(std::move(channels)) {}
  std::string name() const override { return "importance"; }
  std::string identity() const override { return net_->identity(); }
  std::vector<declared_tensor> outcome(const program_job&) const override {
    std::vector<declared_tensor> vectors;
    for (std::size_t m = 0; m < maps_.size(); ++m)
      vectors.push_back({.name = importance_name(maps_[m]), .shape = {channels_[m]}});
    return vectors;
  }

protected:
  slice_result run_call(const program_call& call) const override {
    constexpr std::int64_t rows_at_once = 64;
    const auto weights = call.in.at(flat_weights).unsqueeze(0);
    const class_range classes{0, call.in.at("seen").item<std::int64_t>()};
    const auto labels = call.labels();
    std::vector<at::Tensor> sums(maps_.size());
    for (std::int64_t first = 0; first < labels.numel(); first += rows_at_once) {
      std::vector<std::int64_t> places(static_cast<std::size_t>(std::min(rows_at_once, labels.numel() - first)));
      std::iota(places.begin(), places.end(), first);
      add_rows(weights, call.images(places), labels.narrow(0, first, std::ssize(places)), classes, sums);
    }
    slice_result answer;
    for (std::size_t m = 0; m < maps_.size(); ++m) {
      const auto mean = sums[m].mean();
      answer.tensors[importance_name(maps_[m])] =
          at::where(mean > 0, sums[m] / mean, at::ones_like(sums[m])).to(at::kFloat).contiguous();
    }
    return answer;
  }

private:
  /// Adds the squared gradient of each row's loss. In evaluation mode no row affects the gradient of another row.
  void add_rows(const at::Tensor& weights, const at::Tensor& images, const at::Tensor& labels, class_range classes,
                std::vector<at::Tensor>& sums) const {
    const auto results = net_->differentiable(leaf_of(weights), images.unsqueeze(0), classes, {});
    const auto loss = nca_rows(results.logits[0], labels).sum();
    std::vector<at::Tensor> maps;
    for (const auto& name : maps_)
      for (const auto& map : results.maps)
        if (map.name == name)
          maps.push_back(map.values);
    const auto gradients = gradients_of(loss, maps);
    for (std::size_t m = 0; m < gradients.size(); ++m) {
      const auto added = gradients[m][0].to(at::kDouble).square().sum({0, 2, 3}); // [C]
      sums[m] = sums[m].defined() ? sums[m] + added : added;
    }
  }

  model_ref net_;
  std::vector<std::string> maps_;
  std::vector<std::int64_t> channels_;
};

/// Returns the channel count of each map, from a forward pass of a zero image.
std::vector<std::int64_t> channels_of(const method_setup& setup, const std::vector<std::string>& maps) {
  tape once;
  once.for_backward = false;
  once.maps = maps;
  const auto weights = setup.initial->at(flat_weights).cpu().unsqueeze(0);
  const auto image = at::zeros({1, 1, setup.shape[0], setup.shape[1], setup.shape[2]});
  std::vector<std::int64_t> channels;
  for (const auto& map : setup.net->forward(weights, image, {}, &once).maps)
    channels.push_back(map.size(2));
  return channels;
}

// -- the loss ---------------------------------------------------------------------------------------------------------

/// Returns AFC's loss. @param factor weight of the distillation, distillation sqrt(n / s)
/// @param importance [channels] of every map; undefined: all channels have weight 1
loss_ref afc_objective(double factor, std::vector<at::Tensor> importance, const std::string& task) {
  return differentiable_objective(
      {.identity = fmt::format("afc {} {}", factor, task), .terms = {"nca", "map_distillation"}},
      [factor, importance = std::move(importance)](const loss_rows& in) {
        std::vector<at::Tensor> terms{nca_rows(in.logits, in.labels), {}};
        for (std::size_t m = 0; m < in.maps.size(); ++m) {
          const auto& map = in.maps[m];
          const auto weight =
              importance[m].defined() ? importance[m].to(map.device()) : at::ones({map.size(1)}, map.options());
          const auto distance =
              channel_rows(map, in.teachers[0].maps[m], weight) * (factor / static_cast<double>(in.maps.size()));
          terms[1] = terms[1].defined() ? terms[1] + distance : distance;
        }
        return terms;
      });
}

// -- the method -------------------------------------------------------------------------------------------------------

class afc final : public proxy_rehearsal {
public:
  void keys(key_table& table) override {
    table.number("distillation", options_.distillation, {.low = 0.0}, "Weight of the distillation of feature maps.");
    table.choice("importance", options_.importance,
                 {{"own", measured_model::own}, {"received", measured_model::received}},
                 "Model whose gradients determine the weights of channels: the client's own after training, or the "
                 "received one.");
    proxy_keys(table);
    memory_keys(table);
    readout_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string training = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nschedule = \"cosine\"\n"
                                 "momentum = 0.9\nweight_decay = 5e-4\naugment = \"crop-flip-jitter\"\n";
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and AFC's weights for CIFAR-100",
             .toml = training},
            {.name = "official",
             .meaning = "like preset paper, with the herding of AFC's official code",
             .toml = "[strategy]\nexemplars = \"repeats\"\n" + training}};
  }
  void prepare(const method_setup& setup) override {
    proxy_rehearsal::prepare(setup);
    importance_ = std::make_shared<importance_program>(setup.net, maps(), channels_of(setup, maps()));
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override;

private:
  [[nodiscard]] loss_ref loss_for(const broadcast& in, const class_split& classes) const;
  [[nodiscard]] program_job measuring(const client_context& ctx, const rehearsal_state& now,
                                      const tensors_ref& weights) const;

  options options_;
  program_ref importance_;
};

loss_ref afc::loss_for(const broadcast& in, const class_split& classes) const {
  std::vector<at::Tensor> known;
  for (const auto& map : maps()) {
    const auto* const sent = in.extra ? in.extra->find(importance_name(map)) : nullptr;
    known.push_back(sent ? *sent : at::Tensor());
  }
  const auto factor = options_.distillation * std::sqrt(classes.growth());
  return afc_objective(factor, std::move(known), fmt::format("task {}", classes.task));
}

program_job afc::measuring(const client_context& ctx, const rehearsal_state& now, const tensors_ref& weights) const {
  auto in = std::make_shared<tensor_map>(*weights_only(weights->at(flat_weights)));
  in->put("seen", at::tensor(now.classes.opened(), at::kLong));
  const auto rows = now.all_rows();
  return {.body = importance_, .in = in, .samples = view_of(ctx.samples(), rows), .rows = 3 * std::ssize(rows)};
}

task<client_result> afc::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = proxy_training(ctx, in, now, loss_for(in, now.classes), options_.distillation > 0.0);
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;
  auto tuning = tune_head(ctx, in, now, trained.weights);
  const auto weights = co_await tuning;

  tensors_ref more;
  if (now.is_last && !now.all_rows().empty()) {
    auto measured = measuring(ctx, now, options_.importance == measured_model::own ? weights : now.start);
    auto measure = ctx.run(std::move(measured));
    const auto importance = co_await measure;
    more = importance.out;
  }
  auto summing = class_sums(ctx, now, weights);
  const auto sums = co_await summing;
  if (sums) {
    auto both = std::make_shared<tensor_map>(*sums);
    for (const auto& [name, value] : *more)
      both->put(name, value);
    more = both;
  }
  co_return result_of(now, weights, more);
}

// -- server half ------------------------------------------------------------------------------------------------------

class afc_server final : public rehearsing_server {
public:
  afc_server(const method_setup& setup, const std::vector<std::string>& maps) : rehearsing_server(setup) {
    for (const auto& map : maps)
      names_.push_back(importance_name(map));
    sums_.resize(names_.size());
  }
  broadcast open_round(const round_info& info) override {
    auto sent = rehearsing_server::open_round(info);
    if (!sent.extra || importance_.empty())
      return sent;
    auto extra = std::make_shared<tensor_map>(*sent.extra);
    for (std::size_t m = 0; m < names_.size(); ++m)
      extra->put(names_[m], importance_[m]);
    sent.extra = extra;
    return sent;
  }
  std::map<std::string, double> summary_metrics() const override {
    auto numbers = rehearsing_server::summary_metrics();
    for (std::size_t m = 0; m < importance_.size(); ++m)
      numbers["largest_" + names_[m]] = importance_[m].max().item<double>();
    return numbers;
  }
  void persist(archive& state) override {
    rehearsing_server::persist(state);
    state(importance_);
    for (auto& sum : sums_)
      state(sum);
  }

protected:
  void fold_more(const delivery& in) override {
    for (std::size_t m = 0; m < names_.size(); ++m)
      if (const auto* const own = in.upload->find(names_[m]))
        sums_[m].add(own->cpu(), weight_of(in));
  }
  void end_task(const round_info&) override {
    if (sums_.empty() || sums_.front().empty())
      return;
    importance_.clear();
    for (auto& sum : sums_)
      importance_.push_back(sum.take());
  }

private:
  std::vector<std::string> names_;
  std::vector<weighted_average> sums_;
  std::vector<at::Tensor> importance_; // importances of the last finished task; empty in the first task
};

std::unique_ptr<server_half> afc::make_server() const { return std::make_unique<afc_server>(setup(), maps()); }

const strategy_registration line{
    {.name = "afc",
     .summary = "distillation of feature maps weighted by their effect on the loss (AFC, Kang et al. 2022), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<afc>(); }}};

} // namespace
} // namespace mneme::afc_method

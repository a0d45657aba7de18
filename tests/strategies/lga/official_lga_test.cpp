// Steps of the official programs of GLFC and LGA, recorded by tools/research/official/glfc.py and lga.py.
#include "runtime/method/gradients.hpp"
#include "strategies/lga/gradient_compensation.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/official_steps.hpp"
#include "tests/support/program_check.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 6, old_classes = 4, width = 5, features = 512, extent = 32;
const std::vector<std::int64_t> labels{0, 4, 1, 5, 5, 2, 0, 4, 3}; // 3 is not memorized, so it counts as new

struct program_case {
  const char* name;
  forgetting_terms terms;
  double exponent;
};

std::vector<program_case> programs() {
  const forgetting_terms lga{.likelihood = class_likelihood::sigmoid, .weighting = gradient_weighting::cumulative};
  const forgetting_terms glfc{.likelihood = class_likelihood::sigmoid,
                              .weighting = gradient_weighting::old_new,
                              .weighs_distillation = false,
                              .label_factor = 0.5,
                              .distillation_factor = 0.5};
  return {{"lga", lga, 2.0 / 3.0}, {"glfc", glfc, 1.0}};
}

std::string record_of(const program_case& program) { return std::string(program.name) + "/steps"; }

at::Tensor values_of(const std::string& name, const std::vector<std::int64_t>& shape) {
  return at::tensor(formula(name, c10::multiply_integers(shape))).view(shape);
}

at::Tensor listed(const nlohmann::json& numbers) { return at::tensor(numbers.get<std::vector<double>>(), at::kDouble); }

tensors_ref known_of(const program_case& program) {
  return to_auxiliary({.group_of_class = {0, 0, 1, -1, -1, -1}, .old_tasks = 2, .exponent = program.exponent});
}

/// Linear net on `inputs` numbers, by name; head rows beyond `own` are 0.
at::Tensor scores_by_name(const model& net, const std::string& name, std::int64_t inputs, std::int64_t own) {
  auto flat = at::zeros({net.size()});
  flat.narrow(0, net.layout()[0].offset, own * inputs).copy_(values_of(name + ".weight", {own * inputs}) * 0.3);
  flat.narrow(0, net.layout()[1].offset, own).copy_(values_of(name + ".bias", {own}) * 0.3);
  return flat;
}

/// Tensors of the encoder, by the names of the official LeNet.
const std::vector<std::string> encoder_names{"body.0.weight", "body.0.bias", "body.2.weight", "body.2.bias",
                                             "body.4.weight", "body.4.bias", "fc.0.weight",   "fc.0.bias"};

at::Tensor encoder_by_name() {
  std::vector<at::Tensor> parts;
  const gradient_encoder encoder({3, extent, extent}, classes);
  for (std::size_t i = 0; i < encoder_names.size(); ++i)
    parts.push_back(values_of("encoder." + encoder_names[i], encoder.tensors()[i].shape).flatten() * 0.5);
  return at::cat(parts);
}

/// [count, 3, H, W] uint8
at::Tensor photographs(const std::string& name, std::int64_t count) {
  return ((values_of(name, {count, extent, extent, 3}) + 1) * 127.5).to(at::kByte).permute({0, 3, 1, 2}).contiguous();
}

/// Rows nearest to their class means, of classes 1 and 3, unnormalized as nets receive them.
std::shared_ptr<dataset> nearest_rows(official_steps& both) {
  auto rows = std::make_shared<dataset>();
  std::vector<at::Tensor> chosen;
  for (std::size_t k = 0; const std::int32_t label : {1, 3}) {
    const auto own = photographs("class." + std::to_string(label), 4);
    const std::vector<double> mean{0.5071, 0.4867, 0.4408}, deviation{0.2675, 0.2565, 0.2761};
    const auto shown = (own.to(at::kDouble) / 255.0 - at::tensor(mean, at::kDouble).view({1, 3, 1, 1})) /
                       at::tensor(deviation, at::kDouble).view({1, 3, 1, 1});
    const auto place = choose_exemplars(shown.flatten(1), 1, exemplar_choice::rank).front();
    both.equal(fmt::format("row nearest to the mean of class {}", label), both["prototypes"].at("nearest")[k++], place);
    chosen.push_back(own[place]);
    rows->labels.push_back(label);
  }
  rows->images = at::stack(chosen);
  rows->transforms.resize(1);
  rows->scale = {1.0F / 255.0F, 1.0F / 255.0F, 1.0F / 255.0F};
  rows->shift = {0.0F, 0.0F, 0.0F};
  return rows;
}

/// Their gradients in the encoder after 50 steps of descent on their pixels: eight tensors, [2, ...].
tensor_map left_by(std::shared_ptr<const dataset> rows) {
  const auto net = model_named("linear", {3, extent, extent}, classes);
  auto in = std::make_shared<tensor_map>();
  in->put("encoder", encoder_by_name());
  in->put("weights", scores_by_name(*net, "net", 3 * extent * extent, classes));
  in->put("seen", at::tensor(classes, at::kLong));
  const auto body =
      prototype_program(net, gradient_encoder({3, extent, extent}, classes), prototype_perturbation::pixels);
  const auto done = run_by_width({{.body = body, .in = in, .samples = rows_from(std::move(rows), 0, 2)}}, 1);
  return tensors_of(done[0]);
}

} // namespace

TEST_CASE("weights of rows, losses and gradients equal the official programs'", "[official][lga][glfc]") {
  for (const auto& program : programs()) {
    official_steps both(record_of(program));
    const auto logits = values_of("logits", {9, classes}) * 3, taught = values_of("taught", {9, old_classes}) * 3;
    const auto truth = at::tensor(labels, at::kLong), weight = at::full({1, 9}, 1.0 / 9.0, at::kFloat);
    for (const auto* const form : {"first", "untaught", "later"}) {
      CAPTURE(program.name, form);
      const auto& expected = both["losses"].at(form);
      const auto where = std::string(form) + " ";
      const bool knows = form != std::string("first");
      const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{knows ? known_of(program) : nullptr};
      const auto z = logits.unsqueeze(0), y = truth.unsqueeze(0);
      loss_input in{.logits = z, .features = z, .labels = y, .row_weight = weight, .auxiliaries = auxiliaries};
      if (form == std::string("later"))
        in.teachers = {{.logits = taught.unsqueeze(0)}};
      const auto step = (*forgetting_objective(program.terms))(in);
      both.term(where + "loss", expected.at("loss"), step.values[0].item<double>(), 1e-6, 0.0);
      both.values(where + "slope", expected.at("slope"), step.d_logits[0]);
      const auto slope = listed(expected.at("slope")).view({9, classes});
      CHECK((step.d_logits[0].to(at::kDouble) - slope).abs().max().item<double>() < 1e-6);
      if (!knows)
        continue;
      const auto groups = at::tensor(std::vector<std::int64_t>{0, 0, 1, -1, -1, -1}).index_select(0, truth);
      const auto sizes = gradient_magnitudes(logits, truth, class_likelihood::sigmoid).pow(program.exponent);
      const auto weights = row_weights(sizes, groups, 2, program.terms.weighting);
      both.values(where + "weights", expected.at("weights"), weights);
      CHECK(at::allclose(weights, listed(expected.at("weights")), 1e-6));
    }
  }
}

TEST_CASE("a net after steps of a client's training equals the official programs'", "[official][lga][glfc]") {
  for (const auto& program : programs()) {
    official_steps both(record_of(program));
    const auto net = model_named("linear", {1, 1, width}, classes);
    auto rows = std::make_shared<dataset>();
    rows->vectors = values_of("rows", {2, 9, width}).view({18, width});
    for (int step = 0; step < 2; ++step)
      for (const auto label : labels)
        rows->labels.push_back(static_cast<std::int32_t>(label));
    for (std::size_t steps : {1, 2}) {
      CAPTURE(program.name, steps);
      train_job job{.net = net,
                    .start = weights_only(scores_by_name(*net, "client", width, classes)),
                    .samples = rows_from(rows, 0, static_cast<std::int64_t>(9 * steps)),
                    .objective = forgetting_objective(program.terms),
                    .auxiliary = known_of(program)};
      job.options = {
          .batch_rows = 9, .learning_rate = 0.1, .weight_decay = 1e-5, .in_order = true, .classes = {0, classes}};
      job.add_teacher(weights_only(scores_by_name(*net, "old", width, old_classes)), {.classes = {0, old_classes}});
      const auto done = make_executor("cpu")->run(std::vector<mneme::job>{{.id = {}, .request = job}});
      const auto& flat = weights_of(done[0]);
      const auto& expected = both["net"][steps - 1];
      for (const auto& [place, name] : {std::pair{0, "fc.weight"}, std::pair{1, "fc.bias"}}) {
        const auto& entry = net->layout()[static_cast<std::size_t>(place)];
        both.values(fmt::format("after {} steps {}", steps, name), expected.at(name),
                    flat.narrow(0, entry.offset, entry.size), 1e-5);
      }
    }
  }
}

TEST_CASE("entropies and task detection equal the official programs'", "[official][lga][glfc]") {
  for (const auto& program : programs()) {
    official_steps both(record_of(program));
    double before = 0.0;
    std::size_t place = 0;
    for (const auto& [name, scale] : {std::pair{"even", 0.1}, std::pair{"sure", 6.0}, std::pair{"even", 0.1}}) {
      const auto now = mean_entropy(values_of(std::string("entropy.") + name, {7, classes}) * scale);
      const auto& expected = both["entropies"][place++];
      const auto where = fmt::format("round {} ", place);
      both.term(where + "entropy", expected[0], now, 1e-6, 0.0);
      both.equal(where + "begins a task", expected[1], begins_task(std::exchange(before, now), now, 1.2, false));
    }
  }
}

TEST_CASE("exemplars that may be selected twice equal the official programs'", "[official][lga][glfc]") {
  for (const auto& program : programs()) {
    official_steps both(record_of(program));
    const auto expected = both["exemplars"].get<std::vector<std::int64_t>>();
    const auto shown = values_of("herded", {6, features});
    both.equal("exemplars", expected, choose_exemplars(shown, std::ssize(expected), exemplar_choice::duplicates));
    CHECK(choose_exemplars(shown, 6, exemplar_choice::greedy) != expected);
  }
}

TEST_CASE("prototypes, their gradients and recovered labels equal the official programs'", "[official][lga][glfc]") {
  for (const auto& program : programs()) {
    official_steps both(record_of(program));
    const auto& gradients = both["prototypes"].at("gradients");
    const auto left = left_by(nearest_rows(both));
    const gradient_encoder encoder({3, extent, extent}, classes);
    for (std::int64_t k = 0; k < 2; ++k) {
      CAPTURE(program.name, k);
      const auto where = fmt::format("prototype {} ", k + 1);
      for (std::size_t g = 0; g < encoder_names.size(); ++g)
        both.weights(where + encoder_names[g], encoder_names[g], left.at(encoder.tensors()[g].name)[k],
                     gradients[static_cast<std::size_t>(k)].at(encoder_names[g]), 1e-4);
      both.equal(where + "label", both["inversion"].at("labels")[static_cast<std::size_t>(k)],
                 label_of_gradients(left.at("4.weight")[k]));
    }
  }
}

TEST_CASE("the reconstruction of an image starts as in the official programs", "[official][lga][glfc]") {
  for (const auto& program : programs()) {
    official_steps both(record_of(program));
    const auto left = left_by(nearest_rows(both));
    const gradient_encoder encoder({3, extent, extent}, classes);
    std::vector<at::Tensor> sent;
    for (const auto& tensor : encoder.tensors())
      sent.push_back(left.at(tensor.name)[0].contiguous());
    const auto target = sent_by(sent, 1);
    encoder_distance measure(encoder, encoder_by_name());
    lbfgs walk(values_of("start", {3 * extent * extent}), 0.1);
    auto slope = at::empty_like(walk.x());
    std::size_t evaluation = 0;
    for (const auto& expected : both["inversion"].at("objectives")) {
      const auto x = walk.x().contiguous();
      const double value =
          measure.value_and_gradient(x.const_data_ptr<float>(), target, slope.mutable_data_ptr<float>());
      both.term(fmt::format("objective {}", ++evaluation), expected, value, 1e-4,
                0.0); // float64 and float32
      REQUIRE(walk.advance_step(value, slope.clone()));
    }
  }
}

TEST_CASE("noise on features has the deviations, bound and score of LGA's official program", "[official][lga]") {
  official_steps both("lga/steps");
  const auto& official = both["monitor"];
  const std::vector<std::int64_t> monitored{1, 3, 1, 3, 3, 1, 1};
  const auto shown = values_of("monitor", {7, features}) * 0.5;
  const auto truth = at::tensor(monitored, at::kLong);
  const auto variances = variances_by_class(shown, truth);
  const rng_key key{.seed = 6, .purpose = first_method_purpose};
  for (std::int64_t k = 0; k < 2; ++k) {
    CAPTURE(k);
    rng_stream drawn(key), again(key);
    auto normals = at::empty({features}, at::kDouble);
    for (std::int64_t i = 0; i < features; ++i)
      normals.mutable_data_ptr<double>()[i] = drawn.normal();
    const auto noise = accepted_noise(variances[k], {.as_printed = false, .scale = 0.15}, again);
    const auto label = std::to_string(k == 0 ? 1 : 3);
    both.weights("noise's deviations of class " + label, "deviations." + label, noise / normals / 0.15,
                 official.at("deviations")[static_cast<std::size_t>(k)], 1e-6);
  }
  rng_stream wide(key);
  const auto longest = accepted_noise(variances[0], {.as_printed = false, .scale = 1e9}, wide);
  both.term("noise's largest length", official.at("length_max"), longest.norm().item<double>(), 1e-6, 0.0);
  const auto head = values_of("monitor.head.weight", {classes, features}) * 0.3;
  const auto bias = values_of("monitor.head.bias", {classes}) * 0.3;
  both.term("score", official.at("score"), 100.0 * monitor_score(shown, truth, head, bias, {.copies = 0}, key), 1e-6,
            0.0);
}

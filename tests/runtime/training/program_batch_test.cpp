#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "runtime/training/program_batch.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/program_check.hpp"
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using steps = std::vector<slice_result>;

/// Test program: its declared outputs and a function.
class scripted : public program {
public:
  using body = std::function<steps(std::span<const program_call>)>;
  scripted(std::vector<declared_tensor> promised, body run) : promised_(std::move(promised)), run_(std::move(run)) {}
  [[nodiscard]] std::string name() const override { return "scripted"; }
  [[nodiscard]] std::string identity() const override { return ""; }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override { return promised_; }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override { return 1 << 10; }
  [[nodiscard]] steps run(std::span<const program_call> calls) const override { return run_(calls); }

private:
  std::vector<declared_tensor> promised_;
  body run_;
};

/// Program that handles one call at a time.
program_ref of_each(std::vector<declared_tensor> promised, std::function<slice_result(const program_call&)> run) {
  return std::make_shared<const scripted>(std::move(promised), [run](std::span<const program_call> calls) {
    steps made;
    for (const auto& call : calls)
      made.push_back(run(call));
    return made;
  });
}

tensors_ref tensor_named(const std::string& name, at::Tensor value) {
  auto made = std::make_shared<tensor_map>();
  made->put(name, std::move(value));
  return made;
}

job_outcome outcome_of(program_job wanted, slice_monitor* monitor = nullptr) {
  const std::vector<job> single{{.request = std::move(wanted)}};
  return make_executor("cpu")->run(single, monitor).front();
}

std::string error_of(const job_outcome& outcome) {
  const auto* const reason = std::get_if<std::string>(&outcome);
  return reason ? *reason : "";
}

/// Error for a program that declares `promised` and returns `made`.
std::string error_of_answer(named_tensors made, std::vector<declared_tensor> promised) {
  return error_of(outcome_of(
      {.body = of_each(std::move(promised), [&](const program_call&) { return slice_result{.tensors = made}; })}));
}

/// Gradient descent on sum((x - t)^2 (1 + x^2)), one step per slice; stacked over calls.
class descent final : public program {
public:
  [[nodiscard]] std::string name() const override { return "descent"; }
  [[nodiscard]] std::string identity() const override { return "0.01"; }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    return {{.name = "x", .shape = job.in->at("target").sizes().vec()}};
  }
  [[nodiscard]] steps run(std::span<const program_call> calls) const override {
    std::vector<at::Tensor> points, targets;
    for (const auto& call : calls) {
      targets.push_back(call.in.at("target"));
      points.push_back(call.slice == 0 ? at::zeros_like(targets.back()) : call.state.at("x"));
    }
    const auto x = leaf_of(at::stack(points)), target = at::stack(targets); // [K, D]
    const auto loss = ((x - target).square() * (1 + x.square())).sum();
    const auto moved = x - 0.01 * gradients_of(loss, {x})[0];
    steps made;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const auto slices = calls[k].in.at("slices").item<std::int64_t>(), done = calls[k].slice + 1;
      made.push_back({.tensors = {{"x", moved[static_cast<std::int64_t>(k)]}},
                      .finished = done == slices,
                      .progress = static_cast<double>(done) / static_cast<double>(slices)});
    }
    return made;
  }
};

program_job descent_of(std::uint64_t seed, std::int64_t slices) {
  auto in = std::make_shared<tensor_map>();
  in->put("target", drawn({5}, seed));
  in->put("slices", at::tensor(slices));
  return {.body = std::make_shared<const descent>(), .in = in};
}

/// Records progress, and stops a run after a given number of slices.
class counting_watch final : public slice_monitor {
public:
  explicit counting_watch(std::size_t slices_max) : slices_max_(slices_max) {}
  [[nodiscard]] bool should_continue(const std::string& name, double progress) override {
    CHECK(name == "descent");
    seen.push_back(progress);
    return seen.size() < slices_max_;
  }
  std::vector<double> seen;

private:
  std::size_t slices_max_;
};

/// Sixteen independent steps with second derivatives of a net, on images [rows, inputs].
std::vector<program_job> inversions_of(const model_ref& net, std::int64_t rows) {
  const auto inputs = net->layout()[0].shape[1];
  const auto body = std::make_shared<const scripted>(
      std::vector<declared_tensor>{{.name = "image", .shape = {rows, inputs}}},
      [net, rows, inputs](std::span<const program_call> calls) {
        std::vector<at::Tensor> weights, images;
        for (const auto& call : calls) {
          weights.push_back(call.in.at(flat_weights));
          images.push_back(call.in.at("image"));
        }
        const auto w = leaf_of(at::stack(weights)), x = leaf_of(at::stack(images));
        const auto seen = net->differentiable(w, x.view({-1, rows, 1, 1, inputs}), {0, 5}, {});
        const auto loss = -stacked_log_softmax(seen.logits).select(-1, 2).sum();
        const auto first = gradients_of(loss, {w}, graph_use::differentiable)[0];
        const auto second = gradients_of(first.square().sum(), {x})[0]; // [K, rows, inputs]
        steps made;
        for (std::int64_t k = 0; k < second.size(0); ++k)
          made.push_back({.tensors = {{"image", second[k]}}});
        return made;
      });
  std::vector<program_job> wanted;
  for (std::uint64_t k = 0; k < 16; ++k) {
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, initial_weights(*net, k));
    in->put("image", drawn({rows, inputs}, k));
    wanted.push_back({.body = body, .in = in});
  }
  return wanted;
}

} // namespace

TEST_CASE("a program has first and second derivatives even if its caller has disabled gradients", "[program_batch]") {
  // y = x^3 at 2: y' = 12; of z = (y')^2, z' = 2 y' y'' = 2 * 12 * 12 = 288.
  const auto cube =
      of_each({{.name = "first", .shape = {1}}, {.name = "second", .shape = {1}}}, [](const program_call& call) {
        const auto x = leaf_of(call.in.at("x"));
        const auto first = gradients_of(x.pow(3), {x}, graph_use::differentiable)[0];
        const auto second = gradients_of(first.square(), {x})[0];
        return slice_result{.tensors = {{"first", first}, {"second", second}}};
      });
  const program_job wanted{.body = cube, .in = tensor_named("x", floats({2.0F}))};
  const auto check = [&] {
    const auto made = outcome_of(wanted);
    CHECK(tensors_of(made).at("first").item<float>() == 12.0F);
    CHECK(tensors_of(made).at("second").item<float>() == 288.0F);
    for (const auto& [name, value] : tensors_of(made)) {
      CHECK_FALSE(value.requires_grad());
      CHECK_FALSE(value.grad_fn()); // the graph was freed with the job
    }
  };
  check();
  const at::NoGradGuard no_gradients;
  const at::AutoDispatchBelowADInplaceOrView no_tracking;
  check();
  CHECK_FALSE(wanted.in->at("x").requires_grad());
}

TEST_CASE("a gradient with respect to an unused tensor is zero", "[program_batch]") {
  const auto body = of_each({{.name = "unused", .shape = {2}}}, [](const program_call& call) {
    const auto x = leaf_of(call.in.at("x")), y = leaf_of(call.in.at("x"));
    return slice_result{.tensors = {{"unused", gradients_of(x.square().sum(), {x, y})[1]}}};
  });
  const auto made = outcome_of({.body = body, .in = tensor_named("x", floats({1.0F, 2.0F}))});
  CHECK(at::equal(tensors_of(made).at("unused"), at::zeros({2})));
}

TEST_CASE("an outcome keeps only the memory of its own values", "[program_batch]") {
  const auto body = of_each({{.name = "row", .shape = {3}}, {.name = "column", .shape = {2}}}, [](const program_call&) {
    const auto whole = at::arange(6, at::kFloat).view({2, 3});
    return slice_result{.tensors = {{"row", whole[1]}, {"column", whole.select(1, 2)}}};
  });
  const auto made = outcome_of({.body = body});
  const auto &row = tensors_of(made).at("row"), &column = tensors_of(made).at("column");
  CHECK(at::equal(row, floats({3, 4, 5})));
  CHECK(row.storage().nbytes() == row.nbytes());
  CHECK(at::equal(column, floats({2, 5})));
}

TEST_CASE("a program's results are compared with its declaration", "[program_batch]") {
  const auto good = floats({1.0F, 2.0F});
  const std::vector<declared_tensor> promised{{.name = "image", .shape = {2}}};
  CHECK(error_of_answer({{"image", good}}, promised).empty());
  CHECK_THAT(error_of_answer({{"picture", good}}, promised),
             ContainsSubstring("program 'scripted': 'image' is missing") && ContainsSubstring("returned 'picture'"));
  CHECK_THAT(error_of_answer({}, promised), ContainsSubstring("returned nothing"));
  CHECK_THAT(error_of_answer({{"image", at::Tensor()}}, promised), ContainsSubstring("'image' is an undefined tensor"));
  CHECK_THAT(error_of_answer({{"image", good.view({1, 2})}}, promised),
             ContainsSubstring("has the shape [1, 2], but its outcome() declares [2]"));
  CHECK_THAT(error_of_answer({{"image", good.to(at::kDouble)}}, promised),
             ContainsSubstring("is of type Double, but its outcome() declares Float"));
  CHECK_THAT(error_of_answer({{"image", floats({1.0F, std::nanf("")})}}, promised),
             ContainsSubstring("'image' has 1 values of 2 that are not finite"));
  CHECK_THAT(error_of_answer({{"image", good}, {"more", good}}, promised),
             ContainsSubstring("returned 'image', 'more', but its outcome() declares 1 of them"));
  const auto no_answer = std::make_shared<const scripted>(promised, [](auto) { return steps{}; });
  CHECK_THAT(error_of(outcome_of({.body = no_answer})), ContainsSubstring("it returned outcomes for 0 of 1 calls"));
}

TEST_CASE("a program that writes to its inputs is detected", "[program_batch]") {
  const auto body = of_each({{.name = "x", .shape = {2}}}, [](const program_call& call) {
    auto x = call.in.at("x");
    x.add_(1);
    return slice_result{.tensors = {{"x", x}}};
  });
  CHECK_THAT(error_of(outcome_of({.body = body, .in = tensor_named("x", floats({1.0F, 2.0F}))})),
             ContainsSubstring("it writes into an input tensor"));
}

TEST_CASE("if stacked calls fail, only the responsible call has no outcome", "[program_batch]") {
  const auto fragile = of_each({{.name = "root", .shape = {1}}}, [](const program_call& call) {
    const auto& x = call.in.at("x");
    if (x.item<float>() < 0)
      throw std::runtime_error("no root of a negative number");
    return slice_result{.tensors = {{"root", x.sqrt()}}};
  });
  std::vector<program_job> wanted;
  for (const auto value : {4.0F, -1.0F, 9.0F})
    wanted.push_back({.body = fragile, .in = tensor_named("x", floats({value}))});
  const auto results = run_by_width(wanted, 3);
  CHECK(tensors_of(results[0]).at("root").item<float>() == 2.0F);
  CHECK(error_of(results[1]) == "program 'scripted': no root of a negative number");
  CHECK(tensors_of(results[2]).at("root").item<float>() == 3.0F);
}

TEST_CASE("each call of a program runs as many slices as it needs", "[program_batch]") {
  counting_watch monitor(100);
  const std::vector<job> batch{{.request = descent_of(1, 3)}, {.request = descent_of(2, 5)}};
  const auto results = make_executor("cpu")->run(batch, &monitor);
  CHECK(monitor.seen == std::vector<double>{0.0, 1.0 / 5, 2.0 / 5, 3.0 / 5, 4.0 / 5}); // progress of the slowest call
  for (std::size_t k = 0; k < 2; ++k) { // d/dx (x - t)^2 (1 + x^2) = 2 (x - t) (1 + x^2) + 2 x (x - t)^2
    const auto target = drawn({5}, k + 1).to(at::kDouble);
    auto x = at::zeros({5}, at::kDouble);
    for (std::size_t slice = 0; slice < (k == 0 ? 3U : 5U); ++slice)
      x = x - 0.01 * (2 * (x - target) * (1 + x.square()) + 2 * x * (x - target).square());
    CHECK(largest_difference(tensors_of(results[k]).at("x"), x.to(at::kFloat)) < 1e-6);
  }
}

TEST_CASE("a program can be stopped between two slices", "[program_batch]") {
  counting_watch monitor(2);
  const std::vector<job> batch{{.request = descent_of(1, 1)}, {.request = descent_of(2, 5)}};
  const auto results = make_executor("cpu")->run(batch, &monitor);
  CHECK(tensors_of(results[0]).at("x").size(0) == 5); // it had ended earlier
  CHECK(error_of(results[1]) == interrupted_text);
}

TEST_CASE("a slice without a state is an error", "[program_batch]") {
  const auto body = of_each({{.name = "x", .shape = {1}}},
                            [](const program_call&) { return slice_result{.tensors = {}, .finished = false}; });
  CHECK_THAT(error_of(outcome_of({.body = body})), ContainsSubstring("left no state for the next"));
  const auto undefined = of_each({{.name = "x", .shape = {1}}}, [](const program_call&) {
    return slice_result{.tensors = {{"x", at::Tensor()}}, .finished = false};
  });
  CHECK_THAT(error_of(outcome_of({.body = undefined})), ContainsSubstring("'x' of its state is an undefined tensor"));
}

TEST_CASE("a call's bits do not depend on other calls, and a program that violates this is detected",
          "[program_batch]") {
  std::vector<program_job> wanted;
  for (std::uint64_t k = 0; k < 16; ++k)
    wanted.push_back(descent_of(k, static_cast<std::int64_t>(1 + k % 4)));
  check_program(wanted);
  const auto by_company = std::make_shared<const scripted>(
      std::vector<declared_tensor>{{.name = "x", .shape = {1}}}, [](std::span<const program_call> calls) {
        return steps(calls.size(), {.tensors = {{"x", at::full({1}, static_cast<double>(calls.size()))}}});
      });
  CHECK(jobs_that_differ(std::vector<program_job>(4, {.body = by_company}), 4) == 4);
}

TEST_CASE("second derivatives of a net have the same bits stacked and alone", "[program_batch]") {
  for (const std::int64_t rows : {4, 1})
    for (const auto& net : {mlp_of({6}, 9, 5), mlp_of({40}, 64, 5)}) { // sizes without and with only whole vectors
      INFO(net->identity() << ", rows " << rows);
      check_program(inversions_of(net, rows));
    }
  const auto logits = drawn({3, 5}, 1);
  CHECK(largest_difference(stacked_log_softmax(logits), at::log_softmax(logits, -1)) < 1e-6);
}

TEST_CASE("a program reads the job's rows normalized, as nets do", "[program_batch]") {
  const auto source = drawn_data(12, {3, 8, 8}, 4);
  const auto body = of_each({{.name = "images", .shape = {2, 3, 8, 8}},
                             {.name = "moved", .shape = {2, 3, 8, 8}},
                             {.name = "labels", .shape = {3}, .type = at::kLong}},
                            [](const program_call& call) {
                              const std::vector<std::int64_t> positions{2, 0};
                              const read_options moved{.augment = augmentation_kind::crop_flip, .stream = call.stream};
                              return slice_result{.tensors = {{"images", call.images(positions)},
                                                              {"moved", call.images(positions, moved)},
                                                              {"labels", call.labels()}}};
                            });
  const rng_key stream{.seed = 3, .purpose = first_method_purpose};
  const auto made = outcome_of({.body = body, .samples = rows_from(source, 5, 3), .stream = stream});
  const std::vector<std::int64_t> rows{7, 5};
  auto images = at::empty({2, 3, 8, 8});
  gather(*source, rows, {}, images.mutable_data_ptr<float>());
  CHECK(same_bits(tensors_of(made).at("images"), images));
  const std::vector<augmentation> augment{draw_augmentation(augmentation_kind::crop_flip, stream, 0, 2),
                                          draw_augmentation(augmentation_kind::crop_flip, stream, 0, 0)};
  gather(*source, rows, augment, images.mutable_data_ptr<float>());
  CHECK(same_bits(tensors_of(made).at("moved"), images));
  CHECK(at::equal(tensors_of(made).at("labels"), at::tensor({1, 2, 3}, at::kLong)));

  const auto beyond = of_each({{.name = "images", .shape = {1, 3, 8, 8}}}, [](const program_call& call) {
    return slice_result{.tensors = {{"images", call.images(std::vector<std::int64_t>{3})}}};
  });
  CHECK_THAT(error_of(outcome_of({.body = beyond, .samples = rows_from(source, 5, 3)})),
             ContainsSubstring("row 3 is requested, but the job has 3 rows"));
}

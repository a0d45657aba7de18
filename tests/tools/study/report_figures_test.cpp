#include "tools/study/report_figures.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

/// Two tasks of two rounds; `shift` is added to the training loss.
reported_run run_with(double shift) {
  reported_run run;
  for (std::uint32_t round = 0; round < 4; ++round) {
    evaluation_record line{.task = {round / 2}, .round = {round}, .accuracy = 50.0};
    line.accuracy_per_task.assign(round / 2 + 1, 50.0);
    line.clients_enrolled = 7;
    line.end_of_task = round % 2 == 1;
    line.training_loss = 1.0 + shift;
    line.training_loss_terms = {{"cross_entropy", 0.75 + shift}, {"proximal", 0.25}};
    run.evaluations.push_back(std::move(line));
  }
  run.classes = {{.task = {0}, .label = 0, .name = "T-shirt", .accuracy = 40.0 + shift}};
  return run;
}

const report_figure* figure_of(const report_drawing& drawing, const std::string& id) {
  for (const auto& figure : drawing.figures)
    if (figure.text.id == id)
      return &figure;
  return nullptr;
}

bool shows(const report_figure* figure, const std::string& text) {
  return figure && figure->in_page.find(text) != std::string::npos;
}

} // namespace

TEST_CASE("training loss is drawn as mean over seeds, its terms per group, and classes as a heat map") {
  const auto drawing = figures_of({{.name = "fedprox", .runs = {run_with(0.0), run_with(0.5)}}});
  CHECK(shows(figure_of(drawing, "training-loss"),
              "data-values=\"1,1.25,1,1.5;2,1.25,1,1.5;3,1.25,1,1.5;4,1.25,1,1.5\""));
  const auto* terms = figure_of(drawing, "loss-terms-1");
  CHECK(
      shows(terms, "data-name=\"cross_entropy\" data-color=\"#3182ce\" class=\"curve\" data-values=\"1,1,0.75,1.25;"));
  CHECK(shows(terms, "data-name=\"proximal\" data-color=\"#d9541e\" class=\"curve\" data-values=\"1,0.25,0.25,0.25;"));
  REQUIRE(terms);
  CHECK(terms->names.size() == 2);
  CHECK(terms->group == 0U);
  CHECK(shows(figure_of(drawing, "classes-1"), "data-tooltip=\"after task 1, class 0 (T-shirt): 40.25\""));
  CHECK(drawing.constants == std::vector<std::string>{"Clients enrolled: 7 clients at all times.",
                                                      "Uploads: 0 MiB at all times.",
                                                      "Downloads: 0 MiB at all times."});
}

TEST_CASE("runs without training loss have no figure of it") {
  auto run = run_with(0.0);
  run.classes.clear();
  for (auto& line : run.evaluations) {
    line.training_loss.reset();
    line.training_loss_terms.clear();
  }
  const auto drawing = figures_of({{.name = "old", .runs = {run}}});
  for (const char* id : {"training-loss", "loss-terms-1", "classes-1"})
    CHECK(figure_of(drawing, id) == nullptr);
  CHECK(shows(figure_of(drawing, "accuracy-tasks-1"), "data-name=\"all seen\""));
  CHECK(shows(figure_of(drawing, "accuracy-rounds"), "class=\"mark\" stroke=\"currentColor\""));
}

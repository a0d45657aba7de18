#include "actors/run/progress.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
using namespace mneme;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using json = nlohmann::ordered_json;

namespace {

/// Stream whose content can be read.
class captured {
public:
  captured() : stream_(::open_memstream(&text_, &size_)) {}
  ~captured() {
    std::fclose(stream_);
    std::free(text_);
  }
  [[nodiscard]] std::FILE* stream() const { return stream_; }
  [[nodiscard]] std::string text() const {
    std::fflush(stream_);
    return {text_, size_};
  }

private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

const accuracy_matrix one_task{.rows = {{75}}, .pooled = {75}};
const evaluation_record evaluation{.task = {0},
                                   .round = {1},
                                   .at = virtual_time{90s},
                                   .accuracy = 75,
                                   .accuracy_per_task = {75},
                                   .loss = 0.5,
                                   .upload_bytes = 2 << 20,
                                   .download_bytes = 3 << 20,
                                   .training_loss = 0.75,
                                   .training_loss_terms = {{"cross_entropy", 0.7}, {"proximal", 0.05}}};
const progress_snapshot snapshot{.task = {0},
                                 .round = {1},
                                 .tasks = 5,
                                 .rounds = 50,
                                 .at = virtual_time{90s},
                                 .in_flight = 10,
                                 .client_rounds = 20,
                                 .training_loss = 0.75};

/// Run with one evaluation and a warning.
std::string whole_run(progress_style style, const run_summary& summary) {
  const captured out;
  progress shown(out.stream(), style);
  shown.started("A title", "runs/x", 7, "feed");
  shown.warned("look out");
  shown.tick(snapshot);
  shown.evaluated(evaluation);
  shown.finished(summary, one_task);
  return out.text();
}

const run_summary done{.run_digest = "beef", .status = "done", .metrics = {.final_accuracy = 75.0}};

} // namespace

TEST_CASE("style lines prints title, seed and digest, one line per evaluation, and the run digest last") {
  const auto text = whole_run(progress_style::lines, done);
  CHECK_THAT(text, StartsWith("A title\nseed 7\nscenario digest feed\nwarning: look out\n"
                              "task 1/5 round 2/50: accuracy 75.00 % (tasks 75.00), loss 0.5000, training loss 0.7500 "
                              "(cross_entropy 0.7000, proximal 0.0500), virtual 1 min 30 s, 2.0 MiB up, 3.0 MiB "
                              "down\naccuracy in percent\n"));
  CHECK_THAT(text, ContainsSubstring("run directory       runs/x\n") && EndsWith("\nrun digest beef\n"));
  CHECK_THAT(text, !ContainsSubstring("\x1b"));
}

TEST_CASE("style json prints one object per line with the name of its event") {
  std::istringstream text(whole_run(progress_style::json, done));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(json::parse(line));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == json{{"event", "started"},
                         {"title", "A title"},
                         {"seed", 7},
                         {"scenario_digest", "feed"},
                         {"directory", "runs/x"}});
  CHECK(lines[1] == json{{"event", "warning"}, {"text", "look out"}});
  CHECK(lines[2].dump() == "{\"event\":\"evaluation\"," + json_text(evaluation).substr(1));
  CHECK(lines[3].begin().key() == "event");
  CHECK(lines[3]["event"] == "finished");
  lines[3].erase("event");
  CHECK(lines[3] == json::parse(json_text(done)));
}

TEST_CASE("style quiet prints nothing for a successful run and the error of a failed one") {
  CHECK(whole_run(progress_style::quiet, done).empty());
  CHECK(whole_run(progress_style::quiet, {.status = "failed", .error = "disk full"}) == "error: disk full\n");
  CHECK(whole_run(progress_style::silent, {.status = "failed", .error = "disk full"}).empty());
}

TEST_CASE("style block draws the round and erases itself before other output") {
  const captured out;
  progress shown(out.stream(), progress_style::block);
  shown.evaluated(evaluation);
  CHECK(out.text().empty());
  shown.tick(snapshot);
  const auto block = out.text();
  CHECK_THAT(block, StartsWith("[....................]   4 %  task 1/5  round 2/50  accuracy 75.00 %\n"
                               "virtual 1 min 30 s  10 clients in flight  training loss 0.7500\n20 client-rounds, "));
  CHECK(std::count(block.begin(), block.end(), '\n') == 3);
  CHECK_THAT(block, EndsWith(" left\n"));
  shown.tick(snapshot); // too soon to redraw
  CHECK(out.text() == block);
  shown.warned("look out");
  CHECK(out.text() == block + "\r\x1b[3A\x1b[Jwarning: look out\n");
  shown.finished(done, one_task); // no block to erase
  CHECK_THAT(out.text(), StartsWith(block + "\r\x1b[3A\x1b[Jwarning: look out\naccuracy in percent\n") &&
                             EndsWith("run digest beef\n"));
}

TEST_CASE("a failing output stream does not stop a run") {
  std::FILE* full = std::fopen("/dev/full", "w");
  REQUIRE(full);
  for (auto style : {progress_style::block, progress_style::lines, progress_style::json}) {
    progress shown(full, style);
    CHECK_NOTHROW(shown.started("t", "d", 1, "x"));
    CHECK_NOTHROW(shown.tick(snapshot));
    CHECK_NOTHROW(shown.evaluated(evaluation));
    CHECK_NOTHROW(shown.finished(done, one_task));
  }
  std::fclose(full);
}

TEST_CASE("default_style() is lines if the output is no terminal") {
  const captured out;
  CHECK(default_style(out.stream()) == progress_style::lines);
}

#include "tools/python/engine/run_handle.hpp"
#include "actors/run/client_class_counts.hpp"
#include "actors/run/process.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/models/user_module.hpp"
#include "runtime/scenario/schema.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/python/engine/user_errors.hpp"
#include "tools/study/accuracy_plot.hpp"
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
namespace mneme {
namespace {

using nb::literals::operator""_a;

std::atomic<bool> is_running{false};

/// Runs a command line with the methods registered in this process. Flushes the output. Returns the exit code.
int run_words(const std::vector<std::string>& words) {
  const nb::gil_scoped_release released;
  std::vector<const char*> pointers;
  for (const auto& word : words)
    pointers.push_back(word.c_str());
  const int code = run_command_line(static_cast<int>(pointers.size()), pointers.data());
  std::cout.flush();
  std::fflush(nullptr);
  return code;
}

/// Runs `act` on a new thread without the GIL, so that LibTorch's settings of the calling thread are not changed.
template <class Act>
void on_own_thread(Act act) {
  std::string failure;
  {
    const nb::gil_scoped_release released;
    std::thread([&] {
      failure = exception_message_of([&] {
        prepare_process();
        act();
      });
    }).join();
  }
  if (!failure.empty())
    throw std::runtime_error(failure);
}

using findings_list = std::vector<std::pair<std::string, std::string>>;
findings_list listed(const diagnostics& findings) {
  findings_list pairs;
  for (const auto& finding : findings)
    pairs.emplace_back(finding.where, finding.text);
  return pairs;
}

/// Validates a scenario and its data. Returns (errors, warnings, resolved text, digest); text and digest are empty if
/// the scenario cannot be read.
nb::tuple checked(const std::filesystem::path& file, const overrides& over, bool with_data) {
  diagnostics errors, doubtful;
  std::string resolved, digest;
  on_own_thread([&] {
    auto read = read_scenario(file, over);
    if (!read) {
      errors = read.error();
      return;
    }
    doubtful = read->warnings;
    if (with_data)
      errors = check_against_data(read->value, nullptr, &doubtful);
    resolved = resolved_text(read->value);
    digest = scenario_digest(read->value);
  });
  return nb::make_tuple(listed(errors), listed(doubtful), resolved, digest);
}

/// Counts the rows of each class that clients hold. Returns (errors, class names, [clients][classes]).
nb::tuple counted_partition(const std::filesystem::path& file, const overrides& over) {
  diagnostics errors;
  client_class_counts counts;
  on_own_thread([&] {
    const auto read = read_scenario(file, over);
    auto found = read ? count_client_classes(read->value) : expected<client_class_counts>(tl::unexpected(read.error()));
    if (found)
      counts = std::move(*found);
    else
      errors = found.error();
  });
  return nb::make_tuple(listed(errors), counts.classes, counts.rows);
}

/// Translates a module file. Returns (errors, layers, names, frozen, reason why there are no layers).
nb::tuple layers_of(const std::filesystem::path& file) {
  diagnostics errors;
  module_layers made;
  on_own_thread([&] {
    auto read = layers_of_module(file);
    if (read)
      made = std::move(*read);
    else
      errors = read.error();
  });
  return nb::make_tuple(listed(errors), made.layers, made.names, made.frozen, made.unfused);
}

} // namespace

run_handle::run_handle(run_description request) : request_(std::move(request)) {
  if (is_running.exchange(true))
    throw std::runtime_error("this process is already running a scenario; wait for it, or start the other run in a "
                             "separate process, as mneme.sweep does");
  static_cast<void>(take_first_error());
  thread_ = std::thread([this] { run(); });
}

run_handle::~run_handle() {
  interrupt();
  const nb::gil_scoped_release released;
  if (thread_.joinable())
    thread_.join();
}

void run_handle::run() {
  failure_ = exception_message_of([&] { begin(); });
  is_running.store(false);
  is_over_.store(true);
  live_->close();
}

void run_handle::begin() {
  run_options options{.out = request_.out,
                      .threads = request_.threads,
                      .style = request_.style,
                      .trace = request_.trace,
                      .interrupts = &interrupts_,
                      .accept = request_.accept,
                      .live = live_,
                      .draw_accuracy = accuracy_plot_svg,
                      .warnings = &warnings_};
  if (request_.resumes) {
    auto ended = resume_simulation(request_.scenario, options);
    if (!ended)
      findings_ = ended.error();
    else if (*ended)
      summary_ = **ended;
    return;
  }
  auto read = read_scenario(request_.scenario, request_.settings);
  if (!read) {
    findings_ = read.error();
    end_ranks(options.accept, end_for(findings_));
    return;
  }
  warnings_ = read->warnings;
  if (!request_.name.empty())
    read->value.name = request_.name;
  auto ended = run_simulation(read->value, options);
  if (ended)
    summary_ = *ended;
  else
    findings_ = ended.error();
}

bool run_handle::wait(double seconds) {
  const nb::gil_scoped_release released;
  if (!is_over_.load())
    version_ = live_->wait_beyond(version_, std::chrono::milliseconds(static_cast<std::int64_t>(1000.0 * seconds)));
  const bool is_over = is_over_.load();
  if (is_over && thread_.joinable())
    thread_.join(); // the thread needs the interpreter, so it ends before the interpreter is finalized
  return is_over;
}

std::vector<std::string> run_handle::evaluations() {
  const auto now = live_->now();
  std::vector<std::string> fresh;
  for (; told_ < now.evaluations.size(); ++told_)
    if (static_cast<std::int64_t>(now.evaluations[told_].round.value) >= now.rounds_before)
      fresh.push_back(json_text(now.evaluations[told_]));
  return fresh;
}

nb::tuple run_handle::pace() const {
  const auto now = live_->now();
  const auto done = now.course.empty() ? std::int64_t{0} : now.rounds_before + std::ssize(now.course);
  return nb::make_tuple(done, now.pace.rounds, now.pace.tasks, now.pace.elapsed_s, now.folder.string());
}

nb::object run_handle::summary() const {
  if (!failure_.empty())
    return nb::make_tuple("failed", failure_, "", "");
  if (!summary_)
    return nb::none();
  return nb::make_tuple(summary_->status, summary_->error, summary_->folder, summary_->resume_from);
}

void bind_runs(nb::module_& module) {
  nb::class_<run_handle>(module, "_RunHandle")
      .def("__init__",
           [](run_handle* self, std::filesystem::path scenario, bool resumes, overrides settings,
              std::filesystem::path out, std::string name, std::int64_t threads, bool block, bool trace,
              const std::string& accept, std::int64_t workers_min, std::string secret,
              std::vector<std::filesystem::path> keys, std::int64_t nodes_started) {
             keys.resize(3); // paths of certificate, key and authority
             accept_options nodes{
                 .trust = {.secret = std::move(secret), .certificate = keys[0], .key = keys[1], .authority = keys[2]},
                 .ranks = nodes_started,
                 .workers_min = workers_min};
             if (!accept.empty()) {
               const auto address = parse_address(accept);
               if (!address)
                 throw nb::value_error(("accept: " + address.error().front().text).c_str());
               nodes.address = *address;
             }
             new (self) run_handle({.scenario = std::move(scenario),
                                    .resumes = resumes,
                                    .settings = std::move(settings),
                                    .out = std::move(out),
                                    .name = std::move(name),
                                    .threads = threads,
                                    .style = block ? progress_style::embedded_block : progress_style::silent,
                                    .trace = trace,
                                    .accept = std::move(nodes)});
           })
      .def("wait", &run_handle::wait)
      .def("interrupt", &run_handle::interrupt)
      .def("evaluations", &run_handle::evaluations)
      .def("pace", &run_handle::pace)
      .def("rounds_before", &run_handle::rounds_before)
      .def("findings", [](const run_handle& run) { return listed(run.findings()); })
      .def("warnings", [](const run_handle& run) { return listed(run.warnings()); })
      .def("summary", &run_handle::summary);
  module.def("_check", &checked, "file"_a, "over"_a, "with_data"_a);
  module.def("_partition", &counted_partition, "file"_a, "over"_a);
  module.def("_layers_of", &layers_of, "file"_a);
  module.def("_run_words", &run_words, "words"_a);
  module.def("_schema", [] { return scenario_schema_text(); });
  module.def("_set_program", [](const std::string& path) { set_sandbox_program(path); });
  module.def("_take_error", &take_first_error);
}

} // namespace mneme

#include "tools/cli/arithmetic.hpp"
#include "tools/cli/cluster_options.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/cli/serving.hpp"
#include "tools/study/accuracy_plot.hpp"
namespace mneme {

int resume_run(const resume_arguments& arguments) {
  if (arguments.folders.size() != 1)
    return bad_input(std::string(arguments.folders.empty() ? "no run given" : "more than one run given") +
                     "; expected mneme resume RUN_DIR, as in mneme resume runs/quickstart-fedavg-s1-01234567");
  const auto threads = threads_option(arguments.threads);
  if (!threads)
    return print_errors(threads.error());
  auto plan = plan_cluster(arguments.on, *threads);
  if (!plan)
    return print_errors(plan.error());
  const auto fail = [&plan](const diagnostics& why) {
    const auto code = print_errors(why);
    end_ranks(plan->accept, end_for(why)); // reported to other ranks, because they cannot find all of these errors
    return code;
  };
  const auto metrics = metrics_option(arguments.metrics, plan->node ? plan->node->local_rank : std::nullopt);
  if (!metrics)
    return fail(metrics.error());
  const auto& folder = arguments.folders.front();
  if (const auto read = read_scenario(std::filesystem::path(folder) / "scenario.toml", {}))
    if (auto ready = reexec_with(read->value.worker.arithmetic); !ready)
      return fail(ready.error());
  if (plan->node)
    return run_node(*plan->node, *metrics, stderr);
  const auto shown = serving_option(arguments.serve, arguments.serve_token, *metrics);
  if (!shown)
    return fail(shown.error());
  const auto& interrupts = watch_interrupts();
  run_options options{.threads = plan->threads,
                      .style = style_option(arguments.quiet, arguments.json),
                      .interrupts = &interrupts,
                      .accept = plan->accept,
                      .live = shown->view,
                      .measures_actors = shown->metrics != nullptr,
                      .draw_accuracy = accuracy_plot_svg};
  const auto ended = resume_simulation(folder, options);
  if (!ended) {
    const int code = print_errors(ended.error());
    return interrupts.load() > 0 ? exit_interrupted : code;
  }
  if (*ended)
    return exit_code_of(**ended);
  if (!arguments.quiet)
    std::fprintf(stderr, "the run in %s is done; nothing to resume\n", folder.c_str());
  return exit_done;
}

} // namespace mneme

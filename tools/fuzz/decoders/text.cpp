#include "runtime/base/node_address.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/partition_kinds.hpp"
#include "runtime/population/availability_trace.hpp"
#include "runtime/scenario/layers.hpp"
#include "tools/fuzz/decoders/decoder.hpp"
#include "tools/study/run_catalogue.hpp"
#include "tools/study/sweep_request.hpp"
#include <stdexcept>
namespace mneme::fuzz {
namespace {

void read_toml(bytes in) {
  const auto found = read_scenario(file_of(in, "s.toml"), {});
  if (found && scenario_digest(found->value).size() != 32)
    throw std::logic_error("a scenario without a digest");
}

void read_sweep_file(bytes in) {
  const auto file = file_of(in, "sweep.toml");
  if (is_sweep_file(file))
    (void)read_sweep(file);
}

/// Scenario in which two clients hold thirty rows of three classes.
const scenario& small_scenario() {
  static const scenario made = [] {
    constexpr std::string_view text = "seed = 1\n[data]\nname = \"synthetic\"\nshape = [4]\nclasses = 3\nrows = 30\n"
                                      "[tasks]\nkind = \"single\"\n[clients]\ncount = 2\n[rounds]\nper_task = 2\n"
                                      "[model]\nname = \"linear\"\n[strategy]\nname = \"fedavg\"\n";
    const bytes content(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    return read_scenario(file_of(content, "small.toml"), {}).value().value;
  }();
  return made;
}

void read_partition(bytes in) {
  static const auto tasks = make_task_stream(small_scenario(), load_data(small_scenario().data, 1).value()).value();
  auto asked = small_scenario();
  asked.partition.kind = partition_kind::file;
  asked.partition.file = file_of(in, "p.csv").string();
  (void)read_partition_file(asked, tasks, {});
  (void)read_partition_file(asked, tasks, {.name = "domain", .below = 3});
}

void read_availability(bytes in) {
  auto asked = small_scenario();
  asked.devices.availability = device_availability::file;
  asked.devices.availability_file = file_of(in, "a.csv").string();
  (void)read_availability_trace(asked);
}

void read_addresses(bytes in) { (void)parse_address({reinterpret_cast<const char*>(in.data()), in.size()}); }

void read_words(bytes in) {
  const std::string text(reinterpret_cast<const char*>(in.data()), in.size());
  (void)parse_filter(text);
  (void)parse_axis(text);
  (void)parse_seeds("--seeds", text);
}

} // namespace

std::vector<decoder> text_decoders() {
  return {{"text", "toml", read_toml},           {"text", "sweep", read_sweep_file},
          {"text", "partition", read_partition}, {"text", "availability", read_availability},
          {"text", "addresses", read_addresses}, {"text", "words", read_words}};
}

} // namespace mneme::fuzz

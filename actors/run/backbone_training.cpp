#include "actors/run/backbone_training.hpp"
#include "actors/run/load_run_context.hpp"
#include "runtime/base/atomic_file.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/task_stream.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/storage/checksummed_tensors.hpp"
#include "runtime/storage/parameters.hpp"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

std::string place_of(const scenario& settings) { return settings.where("model.backbone"); }

expected<scenario> scenario_of(const scenario& settings) {
  auto read = read_scenario(settings.model.backbone, {});
  if (!read)
    return tl::unexpected(read.error());
  if (!read->value.model.backbone.empty())
    return failed(place_of(settings),
                  settings.model.backbone.string() +
                      " has a model.backbone, too; expected a scenario that trains from scratch or from model.weights");
  return std::move(read->value);
}

/// Keys of the net with their values as TOML.
std::map<std::string, std::string> keys_of(const scenario& settings) {
  std::map<std::string, std::string> texts{{"name", settings.model.name}};
  key_table keys;
  if (settings.model.kind)
    settings.model.kind->keys(keys);
  for (const auto& option : keys.all())
    if (option.name != "head_hidden")
      texts[option.name] = current_text(option);
  return texts;
}

/// Lists the keys whose values differ between the two nets, such as "width = 8, there width = 16". Adapters and
/// low-rank adapters may be added to a net that has none: flat_parameters() keeps their initial values if the file
/// lacks them.
std::string differences(const scenario& settings, const scenario& trained) {
  const auto wanted = keys_of(settings), found = keys_of(trained);
  const auto value_there = [&](const std::string& name) {
    const auto entry = found.find(name);
    return entry == found.end() ? std::string("none") : entry->second;
  };
  const auto may_add = [&](const std::string& name) {
    return (name.starts_with("adapter") && value_there("adapter") == "0") ||
           (name.starts_with("low_rank") && value_there("low_rank") == "0");
  };
  std::vector<std::string> names;
  for (const auto& [name, value] : wanted)
    if (value != value_there(name) && !may_add(name))
      names.push_back(fmt::format("{} = {}, but {} in that scenario", name, value, value_there(name)));
  return fmt::format("{}", fmt::join(names, "; "));
}

/// True if both scenarios read the same rows. Generated rows depend on the seed.
bool share_data(const scenario& a, const scenario& b) {
  return a.data.name == b.data.name && (a.data.name != "synthetic" || a.data_seed() == b.data_seed());
}

fs::path folder_of_nets() {
  if (const char* const named = std::getenv("MNEME_CACHE"))
    return fs::path(named) / "backbones";
  const char* const home = std::getenv("HOME");
  return (home ? fs::path(home) / ".cache" / "mneme" : fs::temp_directory_path() / "mneme") / "backbones";
}

/// Digest of all inputs that determine the weights on this machine: the scenario, its rows and the program. Fails if
/// the rows cannot be loaded.
expected<std::string> name_of_net(const scenario& trained) {
  const auto rows = load_data(trained.data, trained.data_seed());
  if (!rows)
    return tl::unexpected(rows.error());
  const auto text =
      scenario_digest(trained) + " " MNEME_VERSION " " + trained.worker.device + " " + hex_text(data_content(*rows));
  return hex_text(digest_of(std::as_bytes(std::span(text))));
}

/// True if the file exists and its checksum matches. Warns about a damaged file.
bool is_kept(const fs::path& weights) {
  std::error_code none;
  if (!fs::exists(weights, none))
    return false;
  const auto net = read_checksummed_tensors(weights);
  if (net)
    return true;
  for (const auto& damage : net.error())
    std::fprintf(stderr, "%s\n", printable(damage.where + ": warning: " + damage.text + "; it is recomputed").c_str());
  return false;
}

/// File lock that serializes the training of one net among processes.
class net_lock {
public:
  explicit net_lock(const fs::path& file) : file_(file, O_CREAT | O_RDWR | O_CLOEXEC) {
    while (::flock(file_.descriptor(), LOCK_EX) != 0 && errno == EINTR)
      ;
  }

private:
  open_file file_;
};

} // namespace

diagnostics validate_backbone(const scenario& settings, const raw_data& data) {
  if (settings.model.backbone.empty())
    return {};
  const auto trained = scenario_of(settings);
  if (!trained)
    return trained.error();
  diagnostics errors;
  if (const auto text = differences(settings, *trained); !text.empty())
    errors.push_back(
        {place_of(settings), fmt::format("{} trains a different net: {}; expected the same keys of [model]",
                                         settings.model.backbone.string(), text)});
  if (!share_data(settings, *trained))
    return errors;
  const raw_data about{.name = data.name,
                       .classes = trained->data.name == "synthetic" ? trained->data.classes : data.classes,
                       .domain_names = data.domain_names};
  const auto known = classes_used(*trained, about), used = classes_used(settings, data);
  if (!known || !used)
    return known ? errors : known.error(); // other checks report errors of this scenario's tasks
  std::vector<std::int64_t> shared;
  std::set_intersection(known->begin(), known->end(), used->begin(), used->end(), std::back_inserter(shared));
  if (!shared.empty())
    errors.push_back(
        {place_of(settings), fmt::format("{} trains the backbone on classes that the tasks use: {} of '{}'; select "
                                         "other classes with tasks.classes and tasks.class_order",
                                         settings.model.backbone.string(), fmt::join(shared, ", "), data.name)});
  return errors;
}

namespace {

/// Trains the net and caches its weights. Throws if files cannot be written. @param path path of the net's files,
/// without extension
expected<trained_net> trained_and_kept(const scenario& settings, const scenario& trained, const fs::path& path,
                                       const run_options& options) {
  const auto beside = [&](const char* ending) { return fs::path(path.string() + ending); };
  trained_net net_file{.weights = beside(".safetensors")};
  fs::create_directories(path.parent_path());
  const net_lock lock(beside(".lock"));
  if (fs::exists(net_file.weights) && read_checksummed_tensors(net_file.weights)) // the previous holder of the lock has
                                                                                  // trained it
    return net_file;
  if (options.style != progress_style::quiet && options.style != progress_style::silent)
    std::fprintf(stderr, "training the backbone of %s first; it is saved as %s for later runs\n",
                 settings.model.backbone.string().c_str(), net_file.weights.string().c_str());
  const auto out = beside(".run");
  fs::remove_all(out);
  const auto ended = run_simulation(
      trained,
      {.out = out, .threads = options.threads, .style = progress_style::quiet, .interrupts = options.interrupts});
  if (!ended)
    return tl::unexpected(ended.error());
  if (ended->status != "done")
    net_file.unfinished = *ended;
  else if (const auto net = read_safetensors(out / "model.safetensors"))
    write_checksummed_tensors(net_file.weights, *net);
  else
    return tl::unexpected(net.error());
  fs::remove_all(out);
  return net_file;
}

} // namespace

expected<trained_net> load_or_train_backbone(const scenario& settings, const run_options& options) {
  if (settings.model.backbone.empty())
    return trained_net{};
  const auto trained = scenario_of(settings);
  if (!trained)
    return tl::unexpected(trained.error());
  const auto named = name_of_net(*trained);
  if (!named)
    return tl::unexpected(named.error());
  const auto& name = *named;
  const auto folder = folder_of_nets();
  trained_net net_file{.weights = folder / (name + ".safetensors")};
  if (is_kept(net_file.weights))
    return net_file;
  const auto data = options.data ? expected<raw_data>(*options.data) : load_data(settings.data, settings.data_seed());
  if (!data)
    return tl::unexpected(data.error());
  // Validates the run before the net is trained, because the training takes minutes.
  if (const auto sound = load_run_context(settings, {.use = run_context_use::check, .data = &*data}); !sound)
    return tl::unexpected(sound.error());
  expected<trained_net> kept;
  const auto reason =
      exception_message_of([&] { kept = trained_and_kept(settings, *trained, folder / name, options); });
  if (!reason.empty())
    return failed(place_of(settings), "cannot save the backbone: " + reason + "; set $MNEME_CACHE to another folder");
  return kept;
}

} // namespace mneme

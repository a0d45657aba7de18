#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/options/number_limits.hpp"
#include "runtime/scenario/sections.hpp"
#include <algorithm>
namespace mneme {
namespace {

std::vector<std::string> data_names() {
  std::vector<std::string> names;
  for (const auto& source : data_sources())
    names.push_back(source.name);
  return names;
}

/// Adds the keys for user data.
void own_data_keys(section_keys& keys, data_section& to) {
  const auto source = data_source_named(to.name);
  const bool has_file = source.own_file, is_folder = source.is_own && !source.own_file;
  keys.path("file", to.file,
            "arrays: an .npz or .safetensors file, or a folder of .npy files (or its train_x.npy), with the arrays "
            "train_x, train_y, test_x, test_y and optionally train_domain, test_domain, class_names, domain_names. "
            "csv: a table with a header.");
  keys.used_if(has_file, "only data.name = \"arrays\" and \"csv\"");
  keys.text("folder", to.folder,
            "folder: name of the image folder below data.root or an entry of $MNEME_DATA (nodes search their own); "
            "empty: data.root itself.");
  keys.used_if(is_folder, "only data.name = \"folder\"");
  keys.number("test_share", to.test_share, {.low = 0.0, .high = 0.95},
              "User data without a test part: share of the rows of each class (and domain) that the seed selects as "
              "test rows, at least one of two or more.");
  keys.omit_default_from_digest();
  keys.used_if(has_file || is_folder, "only data.name = \"folder\", \"arrays\" and \"csv\"");
  keys.integer(
      "channels", to.channels, {.low = 0, .high = 3},
      "folder: 3 for color, 1 for gray (color images are converted); 0: gray if all images are gray, else color.");
  keys.omit_default_from_digest();
  keys.used_if(is_folder, "only data.name = \"folder\"");
  keys.choice("layout", to.layout,
              {{"auto", array_layout::automatic},
               {"channels-first", array_layout::channels_first},
               {"channels-last", array_layout::channels_last}},
              "arrays: axis order of images, [N, C, H, W] or [N, H, W, C]; auto: the channel axis is the one of length "
              "1 or 3.");
  keys.omit_default_from_digest();
  keys.used_if(to.name == "arrays", "only data.name = \"arrays\"");
  keys.text("label_column", to.label_column, "csv: column with the class, a word or a number.");
  keys.omit_default_from_digest();
  keys.used_if(to.name == "csv", "only data.name = \"csv\"");
  keys.text("split_column", to.split_column,
            "csv: column with train or test; \"split\" may be missing, then data.test_share selects test rows.");
  keys.omit_default_from_digest();
  keys.used_if(to.name == "csv", "only data.name = \"csv\"");
  keys.text("domain_column", to.domain_column,
            "csv: column with the domain, a word or a number; \"domain\" may be missing, then there are no domains.");
  keys.omit_default_from_digest();
  keys.used_if(to.name == "csv", "only data.name = \"csv\"");
  keys.texts("ignore_columns", to.ignore_columns,
             "csv: names of columns to ignore; \"\" is a column without a name, such as an index written by pandas.");
  keys.omit_default_from_digest();
  keys.used_if(to.name == "csv", "only data.name = \"csv\"");
}

section_keys data_keys(data_section& to) {
  section_keys keys;
  const auto source = data_source_named(to.name);
  const bool holds_pixels = !source.holds_tokens && !(source.from_seed && to.tokens > 0);
  keys.word("name", to.name, data_names(), "The data set; `mneme list datasets` describes them.");
  keys.integer(
      "seed", to.seed, {.low = -1, .high = seed_max},
      "Seed of the data, their order and their partition: drawn rows and test rows, class and domain order, "
      "transforms, clients' rows. With a fixed one, runs of different seeds compare on the same split; -1: seed.");
  keys.omit_default_from_digest();
  keys.path("root", to.root,
            "Folder with the data files; empty: the entries of $MNEME_DATA (a path list), then system folders.");
  keys.used_if(!source.from_seed, "only data sets in files");
  keys.used_if(!source.own_file, "only data sets that are searched for");
  keys.integer("train_rows", to.train_rows, {.low = 0}, "Only the first n training rows of the file; 0: all.");
  keys.integer("test_rows", to.test_rows, {.low = 0}, "Only the first n test rows of the file; 0: all.");
  keys.integer("train_per_class", to.train_per_class, {.low = 0},
               "Only the first n training rows of each class, after train_rows; 0: all.");
  keys.integer("test_per_class", to.test_per_class, {.low = 0},
               "Only the first n test rows of each class, after test_rows; 0: all.");
  keys.choice(
      "normalize", to.normalize,
      {{"mean-std", normalization::mean_std}, {"unit", normalization::unit}, {"measured", normalization::measured}},
      "mean-std: pixels minus mean, divided by deviation: the data set's published values, or 0.5 and 0.5 (EMNIST, "
      "USPS, digits, PACS, synthetic and user images); numbers are not changed. unit: pixels in [0, 1]; numbers scaled "
      "to [0, 1] over the training rows. measured: mean 0 and deviation 1 over the training rows, per channel or "
      "number.");
  keys.used_if(holds_pixels, "only images");
  keys.flag("transposed", to.transposed,
            "True if the images in idx files are stored transposed, as in the public EMNIST.");
  keys.used_if(source.index_files, "only data sets in idx files");
  keys.integers("shape", to.shape, {.low = 1, .high = 65'536},
                "synthetic: [features], or [channels, height, width] of images.");
  keys.used_if(source.from_seed, "only data.name = \"synthetic\"");
  keys.integer("classes", to.classes, {.low = 1, .high = 100'000}, "synthetic: the number of classes.");
  keys.used_if(source.from_seed, "only data.name = \"synthetic\"");
  keys.integer("rows", to.rows, {.low = 1, .high = 1'000'000'000}, "synthetic: the number of training rows.");
  keys.used_if(source.from_seed, "only data.name = \"synthetic\"");
  keys.integer("vocabulary_size", to.tokens, {.low = 0, .high = 16'777'216},
               "Vocabulary size: tokens are integers below it. synthetic: rows have data.shape tokens; 0: pixels. "
               "arrays: 0: the largest token plus one.");
  keys.used_if(source.from_seed || to.name == "arrays", "only data.name = \"synthetic\" and \"arrays\"");
  keys.integer("side", to.side, {.low = 0, .high = 1'024},
               "Image folders: side length in pixels, at least 8, to which the central square of each image is "
               "resized; folder: 0 (its default): all images must have one size, which is kept.");
  keys.used_if(source.image_folders, "only data sets in image folders");
  keys.default_from([&to] {
    if (to.name == "folder")
      to.side = 0;
  });
  keys.integer(
      "resize", to.resize, {.low = 0, .high = 1'024},
      "Length of the shorter side in pixels to which images are resized (bicubic, as in Pillow); 0: original size.");
  keys.integer("crop", to.crop, {.low = 0, .high = 1'024},
               "Side length in pixels of the center crop after data.resize; 0: no crop.");
  own_data_keys(keys, to);
  return keys;
}

section_keys tasks_keys(tasks_section& to) {
  section_keys keys;
  keys.choice("kind", to.kind,
              {{"class-incremental", task_kind::class_incremental},
               {"domain-incremental", task_kind::domain_incremental},
               {"single", task_kind::single}},
              "class-incremental: new classes in each task; domain-incremental: the same classes in another domain; "
              "single: one task with everything.");
  const bool by_class = to.kind == task_kind::class_incremental;
  keys.integer("count", to.count, {.low = 1, .high = 100'000},
               "Number of tasks; `single` has one; if not given, the length of tasks.sizes.");
  keys.default_from([&to] {
    if (to.kind == task_kind::class_incremental && !to.sizes.empty())
      to.count = std::ssize(to.sizes);
  });
  keys.integers("sizes", to.sizes, {.low = 1, .high = 1'000'000},
                "Number of classes of each task, as in [4, 3, 3]; empty: an even split over tasks.count tasks, in "
                "which the first tasks get the remainder.");
  keys.omit_default_from_digest();
  keys.used_if(by_class, "only tasks.kind = \"class-incremental\"");
  keys.integer("first_classes", to.first_classes, {.low = 0},
               "Number of classes of a larger first task; 0: as the others. The remaining classes are split evenly "
               "over the other tasks.");
  keys.used_if(by_class, "only tasks.kind = \"class-incremental\"");
  keys.integer("classes", to.classes, {.low = 0}, "Only the first n classes of the order; 0: all.");
  keys.word_or_integers("class_order", to.class_order, {"natural", "seeded", "icarl87", "np1993"},
                        "Order in which classes appear: by number, random by the seed, a published order, or a list.");
  keys.choice(
      "transform", to.transform,
      {{"none", task_transform::none},
       {"permute", task_transform::permute},
       {"affine", task_transform::affine},
       {"domains", task_transform::domains},
       {"class-blocks", task_transform::class_blocks}},
      "domain-incremental: permuted pixels, rotated and sheared images, the data set's own domains, or blocks of "
      "classes with label = class mod classes_per_task.");
  const bool domains = to.kind == task_kind::domain_incremental;
  keys.used_if(domains, "only tasks.kind = \"domain-incremental\"");
  keys.word_or_name_list("domain_order", to.domain_order, {"natural", "seeded"},
                         "domains: order of the domains over tasks: by number, random by the seed, or a list of names, "
                         "as in [\"sketch\", \"photo\"] (or of numbers from 0).");
  keys.omit_default_from_digest();
  keys.used_if(domains && to.transform == task_transform::domains, "only tasks.transform = \"domains\"");
  keys.integer("classes_per_task", to.classes_per_task, {.low = 0}, "class-blocks: number of classes per task.");
  keys.used_if(domains && to.transform == task_transform::class_blocks, "only tasks.transform = \"class-blocks\"");
  keys.choice("transition", to.transition,
              {{"round", task_transition::round}, {"staggered", task_transition::staggered}},
              "round: all clients change task at a round; staggered: each client at its own later time.");
  keys.duration(
      "transition_spread", to.transition_spread,
      "staggered: clients enter a task at uniformly distributed times, up to this long after the server opens it.");
  keys.used_if(to.transition == task_transition::staggered, "only tasks.transition = \"staggered\"");
  keys.number("keep_task_share", to.keep_task_share, {.low = 0.0, .high = 1.0},
              "Share of the enrolled clients that keep their old task when a new one begins, drawn for each task.");
  return keys;
}

section_keys partition_keys(partition_section& to) {
  using enum partition_kind;
  const auto kind = to.kind;
  std::vector<std::pair<std::string, partition_kind>> words;
  for (const auto& word : partition_words())
    words.emplace_back(word.word, word.kind);
  section_keys keys;
  keys.choice("kind", to.kind, std::move(words),
              "How the rows of a task are divided among clients; see `mneme list partitions`.");
  keys.number("beta", to.beta, {.low = 0.0, .open_low = true},
              "dirichlet, dirichlet-capped: concentration; with a small value clients hold few classes.");
  keys.used_if(kind == dirichlet || kind == dirichlet_capped,
               "only partition.kind = \"dirichlet\" and \"dirichlet-capped\"");
  keys.number("class_share", to.class_share, {.low = 0.0, .high = 1.0, .open_low = true},
              "class-share: share of a task's classes that a client holds.");
  keys.used_if(kind == class_share, "only partition.kind = \"class-share\"");
  keys.integer("shards_per_client", to.shards_per_client, {.low = 1},
               "shards: number of shards (pieces of a task's rows, sorted by class) per client.");
  keys.used_if(kind == shards, "only partition.kind = \"shards\"");
  keys.integer("rows_per_client", to.rows_per_client, {.low = 1}, "sampled: rows per client and task.");
  keys.used_if(kind == sampled, "only partition.kind = \"sampled\"");
  keys.choice("seed", to.per_run_seed, {{"per-task", false}, {"per-run", true}},
              "Whether each task is drawn separately, or all tasks use the same draws.");
  keys.used_if(kind != file, "only random partitions");
  keys.choice("over", to.over_enrolled, {{"all", false}, {"enrolled", true}},
              "Whether a task's rows are split over all clients of the run, or over those enrolled in it, so that "
              "every row has an active owner.");
  keys.used_if(kind != file && kind != class_share && kind != sampled, "only partitions in which a row has one owner");
  keys.number("public_share", to.public_share, {.low = 0.0, .high = 0.9},
              "Share of the rows of each task and class that no client holds, for methods that need public data.");
  keys.path(
      "file", to.file,
      "file: CSV with the columns `client`, `row` (in the original training file) and optionally `task`. Rows that are "
      "not listed, and test rows selected by data.test_share, belong to no client. Other columns are ignored.");
  keys.used_if(kind == file, "only partition.kind = \"file\"");
  return keys;
}

section_keys clients_keys(clients_section& to) {
  section_keys keys;
  keys.integer("count", to.count, {.low = 1, .high = 100'000'000}, "Number of clients of the whole run.");
  keys.size(
      "memory_limit", to.memory_limit,
      "RAM for client memories between rounds; beyond it the oldest ones are moved to a file. \"0 B\": no limit.");
  attack_keys(keys, to);
  return keys;
}

section_keys enrolment_keys(enrolment_section& to) {
  section_keys keys;
  keys.choice("kind", to.kind,
              {{"all", enrolment_kind::all},
               {"table", enrolment_kind::table},
               {"growing", enrolment_kind::growing},
               {"random", enrolment_kind::random}},
              "all: every client is always enrolled; table: by a table; growing: more clients with every task; random: "
              "clients join and leave at random times.");
  keys.texts("table", to.table,
             "table: one string per block of client ids (blocks of equal size), with one letter per task: A active, O "
             "left, X not yet enrolled.");
  keys.used_if(to.kind == enrolment_kind::table, "only enrolment.kind = \"table\"");
  const bool grows = to.kind == enrolment_kind::growing, comes_and_goes = to.kind == enrolment_kind::random;
  keys.integer("initial", to.initial, {.low = 1},
               "growing: number of clients in the first task, those with the lowest ids.");
  keys.used_if(grows, "only enrolment.kind = \"growing\"");
  keys.integer("added_per_task", to.added_per_task, {.low = 0},
               "growing: number of clients added with each later task, in id order.");
  keys.used_if(grows, "only enrolment.kind = \"growing\"");
  keys.duration("arrival_mean", to.arrival_mean, "random: mean time until a client enrols (exponential).");
  keys.used_if(comes_and_goes, "only enrolment.kind = \"random\"");
  keys.duration("lifetime_mean", to.lifetime_mean, "random: mean time until a client leaves (exponential).");
  keys.used_if(comes_and_goes, "only enrolment.kind = \"random\"");
  keys.duration("absence_mean", to.absence_mean,
                "random: mean time until it returns (exponential); \"0 s\": it never returns.");
  keys.used_if(comes_and_goes, "only enrolment.kind = \"random\"");
  keys.choice("rejoin", to.rejoin,
              {{"with-memory", rejoin_policy::with_memory}, {"without-memory", rejoin_policy::without_memory}},
              "random: whether a returning client still has its memory.");
  keys.used_if(comes_and_goes && to.absence_mean.count() > 0, "only enrolment.kind = \"random\" with an absence_mean");
  return keys;
}

void async_keys(section_keys& keys, scenario& of_run) {
  auto& to = of_run.rounds;
  const bool async = to.mode == round_mode::async, buffers = to.aggregation == aggregation_kind::fedbuff;
  const std::string in_async = "only rounds.mode = \"async\"";
  const std::string of_fedbuff = "only rounds.aggregation = \"fedbuff\" with rounds.mode = \"async\"";
  keys.choice("aggregation", to.aggregation,
              {{"fedbuff", aggregation_kind::fedbuff}, {"fedasync", aggregation_kind::fedasync}},
              "async: a server step for every buffer of uploads (Nguyen et al. 2022), or for each (Xie et al. 2019).");
  keys.used_if(async, in_async);
  keys.integer("buffer", to.buffer, {.low = 1, .high = 1'000'000'000}, "fedbuff: number of uploads per server step.");
  keys.used_if(async && buffers, of_fedbuff);
  keys.integer("concurrency", to.concurrency, {.low = 1},
               "async: number of clients in flight; if not given, the minimum of 100 and clients.count.");
  keys.default_from([&of_run] {
    if (of_run.rounds.mode == round_mode::async)
      of_run.rounds.concurrency = std::min<std::int64_t>(100, of_run.clients.count);
  });
  keys.used_if(async, in_async);
  keys.choice("staleness", to.staleness,
              {{"polynomial", staleness_kind::polynomial},
               {"constant", staleness_kind::constant},
               {"hinge", staleness_kind::hinge}},
              "async: weight of an upload that is s server steps old: (1 + s)^-a, 1, or 1 up to b steps and "
              "1 / (a (s - b) + 1) beyond.");
  keys.used_if(async, in_async);
  keys.number("staleness_exponent", to.staleness_exponent, {.low = 0.0}, "async: a.");
  keys.used_if(async && to.staleness != staleness_kind::constant,
               "only rounds.staleness = \"polynomial\" and \"hinge\"");
  keys.integer("staleness_bound", to.staleness_bound, {.low = 0}, "hinge: b.");
  keys.used_if(async && to.staleness == staleness_kind::hinge, "only rounds.staleness = \"hinge\"");
  keys.number("mixing", to.mixing, {.low = 0.0, .high = 1.0, .open_low = true},
              "fedasync: mixing weight of an upload that is not stale.");
  keys.used_if(async && !buffers, "only rounds.aggregation = \"fedasync\" with rounds.mode = \"async\"");
  keys.number("server_learning_rate", to.server_learning_rate, {.low = 0.0, .open_low = true},
              "fedbuff: learning rate applied to the mean change of the uploads.");
  keys.used_if(async && buffers, of_fedbuff);
}

section_keys rounds_keys(scenario& of_run) {
  auto& to = of_run.rounds;
  section_keys keys;
  keys.choice("mode", to.mode, {{"sync", round_mode::sync}, {"async", round_mode::async}},
              "sync: a round waits for its cohort; async: the server steps as uploads arrive, and clients get new work "
              "immediately.");
  keys.integer("per_task", to.per_task, {.low = 1, .high = 1'000'000'000},
               "Rounds (async: server steps) per task, unless the method sets them.");
  keys.integer("cohort", to.cohort, {.low = 0},
               "Clients per round; 0: all available; if not given, the minimum of 10 and clients.count.");
  keys.default_from([&of_run] {
    if (of_run.rounds.mode == round_mode::sync)
      of_run.rounds.cohort = std::min<std::int64_t>(10, of_run.clients.count);
  });
  const bool waits = to.mode == round_mode::sync;
  keys.used_if(waits, "only rounds.mode = \"sync\"");
  keys.duration("deadline", to.deadline,
                "Time from the start of the round; \"0 s\": wait for all clients that have not dropped out.");
  keys.used_if(waits, "only rounds.mode = \"sync\"");
  keys.choice(
      "late", to.late, {{"drop", late_policy::drop}, {"keep", late_policy::keep}},
      "Work that misses the deadline: drop: abandon it; keep: fold it into the round that is open when it arrives.");
  keys.used_if(waits && to.deadline.count() > 0, "only rounds with a deadline");
  async_keys(keys, of_run);
  return keys;
}

/// Adds the keys for profiles, traces, and the server's shared bandwidth.
void later_devices_keys(section_keys& keys, scenario& of_run) {
  auto& to = of_run.devices;
  const bool follows_trace = to.availability == device_availability::file || !to.link_file.empty();
  keys.profiles("profiles", to.profiles,
                "Device profiles from which each client's device is drawn: by name (`mneme list devices`) or as files "
                "written by `mneme calibrate`; `link` names a profile whose links replace those of the device; shares "
                "are relative. Empty: rows_per_second and the links above apply to all clients.");
  keys.omit_default_from_digest();
  keys.path(
      "capacity_file", to.capacity_file,
      "CSV with the column `client` and any of `profile`, `rows_per_second`, `uplink_mbit` and `downlink_mbit`. For "
      "the listed clients these values replace profiles and keys; `profile` is an index in devices.profiles, from 0.");
  keys.omit_default_from_digest();
  keys.path("link_file", to.link_file,
            "CSV with the columns `client`, `from`, `to` (seconds), `uplink_mbit` and `downlink_mbit`: links that "
            "change over time. Between its spans a client's link carries nothing. Clients that are not listed have the "
            "links above.");
  keys.omit_default_from_digest();
  keys.choice(
      "trace_end", to.trace_end, {{"stop", trace_end_rule::stop}, {"repeat", trace_end_rule::repeat}},
      "After the last span of a client in availability_file and link_file: stop: it is never reachable again and its "
      "link carries nothing, so a run that waits for it fails with an error; repeat: the spans start again.");
  keys.used_if(follows_trace, "only devices.availability = \"file\" and devices.link_file");
  keys.omit_default_from_digest();
  keys.duration("trace_period", to.trace_period,
                "repeat: length of a trace; \"0 s\": its column `period` if it has one, else the client's last `to`.");
  keys.used_if(follows_trace && to.trace_end == trace_end_rule::repeat, "only devices.trace_end = \"repeat\"");
  keys.omit_default_from_digest();
  keys.number("server_uplink_mbit", to.server_uplink_mbit, {.low = 0.0, .high = 1e9},
              "Megabits per second shared by all uploads to the server (max-min fair, limited by each client's link); "
              "0: no limit.");
  keys.omit_default_from_digest();
  keys.number("server_downlink_mbit", to.server_downlink_mbit, {.low = 0.0, .high = 1e9},
              "Megabits per second shared by all downloads from the server, likewise; 0: no limit.");
  keys.omit_default_from_digest();
}

section_keys devices_keys(scenario& of_run) {
  auto& to = of_run.devices;
  const auto& method = of_run.strategy.method;
  const bool has_proxy = method && method->needs().has_proxy;
  section_keys keys;
  keys.device("rows_per_second", to.rows_per_second, {.low = 0.0, .open_low = true},
              "Training rows per second of a device.");
  keys.used_if(to.profiles.empty(), "only devices without devices.profiles");
  keys.device("uplink_mbit", to.uplink_mbit, {.low = 0.0},
              "Megabits per second from device to server; 0: instantaneous.");
  keys.device("downlink_mbit", to.downlink_mbit, {.low = 0.0},
              "Megabits per second from server to device; 0: instantaneous.");
  keys.device("proxy_uplink_mbit", to.proxy_uplink_mbit, {.low = 0.0},
              "Megabits per second from device to proxy, for methods with a proxy; 0: instantaneous.");
  keys.used_if(has_proxy, "only methods with a proxy");
  keys.device("proxy_downlink_mbit", to.proxy_downlink_mbit, {.low = 0.0},
              "Megabits per second from proxy to device; 0: instantaneous.");
  keys.used_if(has_proxy, "only methods with a proxy");
  keys.flag("observers_cost_time", to.observers_cost_time,
            "Whether observing clients (outside the cohort, in some methods) need a download and time.");
  keys.duration("latency", to.latency, "Time that is added to every transfer.");
  keys.number("dropout", to.dropout, {.low = 0.0, .high = 1.0},
              "Probability that a client drops out of an assignment.");
  keys.choice("availability", to.availability,
              {{"always", device_availability::always},
               {"diurnal", device_availability::diurnal},
               {"file", device_availability::file}},
              "When devices are reachable: always; diurnal: half of every period, starting at a random time per "
              "device; file: by a file.");
  keys.duration("availability_period", to.availability_period, "diurnal: length of a day.");
  keys.used_if(to.availability == device_availability::diurnal, "only devices.availability = \"diurnal\"");
  keys.path("availability_file", to.availability_file,
            "file: CSV with the columns `client`, `from` and `to`, in seconds; clients that are not listed are never "
            "reachable.");
  keys.used_if(to.availability == device_availability::file, "only devices.availability = \"file\"");
  keys.choice("transfer_dtype", to.transfer_dtype,
              {{"fp32", wire_format::fp32},
               {"fp16", wire_format::fp16},
               {"bf16", wire_format::bf16},
               {"int8", wire_format::int8}},
              "Type to which float32 tensors are converted for transfers.");
  later_devices_keys(keys, of_run);
  return keys;
}

constexpr const char* times_of_devices =
    R"(How long things take, in virtual time, each rounded up to 1 ns:
  a job of n rows, passes over them included
      n / rows_per_second, or of a profile
      job_start + n / rate, and round_start more where it is the first of a client's round.
  rate of a profile, for the run's net with B rows in a step (training.batch)
      train_rows_per_second of its [[nets]] entry with the net's name, parameters and batch
      (forward_rows_per_second for jobs without training; 0: three times as many), else
      B / max(B * operations of a row / flops_per_second, bytes of a step / bytes_per_second)
      with the net's own count of products and convolutions, two operations for each multiplication and
      its addition, forward and backward, and of the bytes that a step touches; a forward pass is counted
      by its own operations and a third of the bytes.
  a download or upload of b bytes
      latency + jitter + 8 b / (mbit * 1e6) s; with link_file, until the link's spans have carried that many
      bits pass; where the server's link is shared, until the transfer's parts of it have.
A profile is drawn for each client by the shares; jitter for each of its transfers.)";

} // namespace

const std::vector<partition_word>& partition_words() {
  using enum partition_kind;
  static const std::vector<partition_word> words{
      {"dirichlet", dirichlet, "each class is split by Dirichlet shares over clients (beta)"},
      {"iid", iid, "random rows, equal numbers per client"},
      {"dirichlet-capped", dirichlet_capped,
       "dirichlet with a limit on a client's rows, drawn again until every client has rows (beta)"},
      {"balanced", balanced, "each class dealt in turn: sizes differ by at most one row"},
      {"shards", shards, "rows sorted by class and cut into pieces, dealt at random (shards_per_client)"},
      {"class-share", class_share,
       "each client holds the rows of some of the task's classes (class_share); replicated"},
      {"sampled", sampled, "each client draws its rows of the task at random (rows_per_client); replicated"},
      {"file", file, "a CSV assigns rows to clients (file)"},
  };
  return words;
}

std::vector<section> federation_sections(scenario& into) {
  std::vector<section> sections;
  sections.push_back({"data", "The data set, and the part of it that is used.", data_keys(into.data)});
  sections.push_back({"tasks", "The tasks, and how they differ.", tasks_keys(into.tasks)});
  sections.push_back({"partition", "Assignment of rows to clients.", partition_keys(into.partition)});
  sections.push_back({"clients", "The population.", clients_keys(into.clients)});
  sections.push_back({"enrolment", "The clients that are enrolled in each task.", enrolment_keys(into.enrolment)});
  sections.push_back({"rounds", "The rounds of a task.", rounds_keys(into)});
  sections.push_back({"devices",
                      "Speed and reliability of clients: a number for all, a list with one per client, or "
                      "{ median, sigma } of a log-normal.",
                      devices_keys(into), times_of_devices});
  for (auto& group : upload_sections(into))
    sections.push_back(std::move(group));
  return sections;
}

} // namespace mneme

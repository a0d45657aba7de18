#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
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

/// Keys for user data.
void own_data_keys(section_keys& keys, data_section& to) {
  const auto source = data_source_named(to.name);
  const bool has_file = source.own_file, is_folder = source.is_own && !source.own_file;
  keys.path(
      "file", to.file,
      "arrays: a file of arrays, .npz or .safetensors, or the train_x.npy (or the folder) of arrays that lie beside "
      "each other, .npy each: train_x, train_y, test_x, test_y, if wanted train_domain, test_domain, class_names, "
      "domain_names. csv: a table with a header.");
  keys.read_if(has_file, "only data.name = \"arrays\" and \"csv\"");
  keys.text("folder", to.folder,
            "folder: the name of the folder of pictures below data.root or below an entry of $MNEME_DATA, where nodes "
            "look for their own; empty: data.root itself.");
  keys.read_if(is_folder, "only data.name = \"folder\"");
  keys.number("test_share", to.test_share, {.low = 0.0, .high = 0.95},
              "Own data without a test part: the share of the rows of each class (in each domain) that is drawn for it "
              "from the seed, at least one of two or more.");
  keys.added_later();
  keys.read_if(has_file || is_folder, "only data.name = \"folder\", \"arrays\" and \"csv\"");
  keys.integer(
      "channels", to.channels, {.low = 0, .high = 3},
      "folder: 3 for colour, 1 for grey (the brightness of coloured pictures); 0: grey where all pictures are.");
  keys.added_later();
  keys.read_if(is_folder, "only data.name = \"folder\"");
  keys.choice(
      "layout", to.layout,
      {{"auto", array_layout::automatic},
       {"channels-first", array_layout::channels_first},
       {"channels-last", array_layout::channels_last}},
      "arrays: the order of the axes of images, [N, C, H, W] or [N, H, W, C]; auto: the channels are the axis of "
      "1 or 3.");
  keys.added_later();
  keys.read_if(to.name == "arrays", "only data.name = \"arrays\"");
  keys.text("label_column", to.label_column, "csv: the column of the classes, words or numbers.");
  keys.added_later();
  keys.read_if(to.name == "csv", "only data.name = \"csv\"");
  keys.text("split_column", to.split_column,
            "csv: the column that says train or test; \"split\" may be absent: then data.test_share is drawn.");
  keys.added_later();
  keys.read_if(to.name == "csv", "only data.name = \"csv\"");
  keys.text("domain_column", to.domain_column,
            "csv: the column of the domains, words or numbers; \"domain\" may be absent: then there are none.");
  keys.added_later();
  keys.read_if(to.name == "csv", "only data.name = \"csv\"");
  keys.texts("ignore_columns", to.ignore_columns,
             "csv: columns that are left out, by their names; \"\" names those without a name, such as an index that "
             "pandas wrote.");
  keys.added_later();
  keys.read_if(to.name == "csv", "only data.name = \"csv\"");
}

section_keys data_keys(data_section& to) {
  section_keys keys;
  const auto source = data_source_named(to.name);
  const bool holds_pixels = !source.holds_tokens && !(source.from_seed && to.tokens > 0);
  keys.word("name", to.name, data_names(), "The data set; `mneme list datasets` describes them.");
  keys.path("root", to.root,
            "The folder with the data files; empty: the entries of $MNEME_DATA (a path list), then system folders.");
  keys.read_if(!source.from_seed, "only data sets in files");
  keys.read_if(!source.own_file, "only data sets that are looked for");
  keys.integer("train_rows", to.train_rows, {.low = 0}, "Only the first n training rows of the file; 0: all.");
  keys.integer("test_rows", to.test_rows, {.low = 0}, "Only the first n test rows of the file; 0: all.");
  keys.integer("train_per_class", to.train_per_class, {.low = 0},
               "Only the first n training rows of each class, after train_rows; 0: all.");
  keys.integer("test_per_class", to.test_per_class, {.low = 0},
               "Only the first n test rows of each class, after test_rows; 0: all.");
  keys.choice(
      "normalize", to.normalize,
      {{"mean-std", normalization::mean_std}, {"unit", normalization::unit}, {"measured", normalization::measured}},
      "Pixels minus a mean, over a deviation: the data set's published ones, or 0.5 and 0.5 (EMNIST, USPS, "
      "digits, PACS, made-up rows, own pictures); unit: in [0, 1]; measured: those of the training rows that are read. "
      "Rows of numbers stay as they are with mean-std; unit and measured bring each number, or channel, to [0, 1] or "
      "to "
      "mean 0 and deviation 1 over the training rows.");
  keys.read_if(holds_pixels, "only images");
  keys.flag("transposed", to.transposed, "The images in idx files are stored transposed, as in the public EMNIST.");
  keys.read_if(source.index_files, "only data sets in idx files");
  keys.integers("shape", to.shape, {.low = 1, .high = 65'536},
                "synthetic: [features], or [channels, height, width] of images.");
  keys.read_if(source.from_seed, "only data.name = \"synthetic\"");
  keys.integer("classes", to.classes, {.low = 1, .high = 100'000}, "synthetic: the number of classes.");
  keys.read_if(source.from_seed, "only data.name = \"synthetic\"");
  keys.integer("rows", to.rows, {.low = 1, .high = 1'000'000'000}, "synthetic: the number of training rows.");
  keys.read_if(source.from_seed, "only data.name = \"synthetic\"");
  keys.integer(
      "tokens", to.tokens, {.low = 0, .high = 16'777'216},
      "synthetic: rows hold data.shape tokens, whole numbers below this, for nets that read tokens; 0: pixels. arrays: "
      "tokens lie below this; 0: the largest one and one more.");
  keys.read_if(source.from_seed || to.name == "arrays", "only data.name = \"synthetic\" and \"arrays\"");
  keys.integer(
      "side", to.side, {.low = 0, .high = 1'024},
      "Data sets in folders of pictures: pixels of a side, at least 8, that the square in the middle of pictures "
      "is brought to; folder: 0, if not given: pictures have one size and stay as they are.");
  keys.read_if(source.picture_folders, "only data sets in folders of pictures");
  keys.unless_given([&to] {
    if (to.name == "folder")
      to.side = 0;
  });
  keys.integer("resize", to.resize, {.low = 0, .high = 1'024},
               "Pixels of the shorter side that images are brought to before nets see them, by bicubic interpolation "
               "as Pillow does it; 0: as the data set has them.");
  keys.integer("crop", to.crop, {.low = 0, .high = 1'024},
               "Pixels of a side of the middle of images, which nets see, after data.resize; 0: all of it.");
  own_data_keys(keys, to);
  return keys;
}

section_keys tasks_keys(tasks_section& to) {
  section_keys keys;
  keys.choice("kind", to.kind,
              {{"class-incremental", task_kind::class_incremental},
               {"domain-incremental", task_kind::domain_incremental},
               {"single", task_kind::single}},
              "New classes with each task, the same classes in another domain, or one task with everything.");
  const bool by_class = to.kind == task_kind::class_incremental;
  keys.integer("count", to.count, {.low = 1, .high = 100'000},
               "Tasks, the first included; `single` has one; if not given, as many as tasks.sizes has.");
  keys.unless_given([&to] {
    if (to.kind == task_kind::class_incremental && !to.sizes.empty())
      to.count = std::ssize(to.sizes);
  });
  keys.integers("sizes", to.sizes, {.low = 1, .high = 1'000'000},
                "Classes of each task, as in [4, 3, 3]; empty: classes are dealt evenly over tasks.count tasks, and "
                "where they do not divide, the first tasks have one class more.");
  keys.added_later();
  keys.read_if(by_class, "only tasks.kind = \"class-incremental\"");
  keys.integer("first_classes", to.first_classes, {.low = 0},
               "Classes of a larger first task; 0: as all others. The rest is dealt evenly over the other tasks.");
  keys.read_if(by_class, "only tasks.kind = \"class-incremental\"");
  keys.integer("classes", to.classes, {.low = 0}, "Only the first n classes of the order; 0: all.");
  keys.word_or_integers("class_order", to.class_order, {"natural", "seeded", "icarl87", "np1993"},
                        "Order in which classes appear: by number, drawn from the seed, a published one, or a list.");
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
  keys.read_if(domains, "only tasks.kind = \"domain-incremental\"");
  keys.word_or_name_list("domain_order", to.domain_order, {"natural", "seeded"},
                         "domains: which domain is task 1, 2, ...: by number, drawn from the seed, or a list of names, "
                         "as in [\"sketch\", \"photo\"] (or of numbers from 0).");
  keys.added_later();
  keys.read_if(domains && to.transform == task_transform::domains, "only tasks.transform = \"domains\"");
  keys.integer("classes_per_task", to.classes_per_task, {.low = 0}, "class-blocks: classes of a task.");
  keys.read_if(domains && to.transform == task_transform::class_blocks, "only tasks.transform = \"class-blocks\"");
  keys.choice("transition", to.transition,
              {{"round", task_transition::round}, {"staggered", task_transition::staggered}},
              "Whether all clients change task at a round, or each at a time of its own after it.");
  keys.duration("transition_spread", to.transition_spread,
                "staggered: clients enter a task at uniform times up to so long after the server opens it.");
  keys.read_if(to.transition == task_transition::staggered, "only tasks.transition = \"staggered\"");
  keys.number("staying_share", to.staying_share, {.low = 0.0, .high = 1.0},
              "Share of the enrolled clients that keep their old task when one begins, drawn for each task.");
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
              "How the rows of a task are spread over clients; `mneme list partitions` describes them.");
  keys.number("beta", to.beta, {.low = 0.0, .open_low = true},
              "dirichlet, dirichlet-capped: concentration; small: clients hold few classes.");
  keys.read_if(kind == dirichlet || kind == dirichlet_capped,
               "only partition.kind = \"dirichlet\" and \"dirichlet-capped\"");
  keys.number("class_share", to.class_share, {.low = 0.0, .high = 1.0, .open_low = true},
              "class-share: part of a task's classes that a client holds.");
  keys.read_if(kind == class_share, "only partition.kind = \"class-share\"");
  keys.integer("shards_per_client", to.shards_per_client, {.low = 1},
               "shards: pieces of a task's sorted rows per client.");
  keys.read_if(kind == shards, "only partition.kind = \"shards\"");
  keys.integer("rows_per_client", to.rows_per_client, {.low = 1}, "sampled: rows per client and task.");
  keys.read_if(kind == sampled, "only partition.kind = \"sampled\"");
  keys.choice("seed", to.per_run_seed, {{"per-task", false}, {"per-run", true}},
              "Whether every task draws anew, or repeats one pattern.");
  keys.read_if(kind != file, "only partitions that are drawn");
  keys.choice("over", to.over_enrolled, {{"all", false}, {"enrolled", true}},
              "Whether a task's rows are split over all clients of the run, or over those enrolled in it, so that none "
              "is lost.");
  keys.read_if(kind != file && kind != class_share && kind != sampled, "only rows with one owner");
  keys.number("public_share", to.public_share, {.low = 0.0, .high = 0.9},
              "Share of the rows of each task and class that no client holds, for methods that need public data.");
  keys.path("file", to.file,
            "file: CSV with a header naming `client`, `row` (of the original training file) and, if "
            "wanted, `task`; rows not named belong to nobody, nor do those that data.test_share draws for the test. "
            "Columns of other names are skipped.");
  keys.read_if(kind == file, "only partition.kind = \"file\"");
  return keys;
}

section_keys clients_keys(clients_section& to) {
  section_keys keys;
  keys.integer("count", to.count, {.low = 1, .high = 100'000'000}, "Clients of the whole run.");
  keys.size("memory_limit", to.memory_limit,
            "Memory for what clients remember between rounds; beyond it the oldest goes to a file. \"0 B\": no limit.");
  return keys;
}

section_keys enrolment_keys(enrolment_section& to) {
  section_keys keys;
  keys.choice("kind", to.kind,
              {{"all", enrolment_kind::all},
               {"table", enrolment_kind::table},
               {"growing", enrolment_kind::growing},
               {"random", enrolment_kind::random}},
              "Who takes part: everybody always, by a table, more clients with every task, or as they come and go.");
  keys.texts("table", to.table,
             "table: a string per equal block of client ids, a letter per task: A active, O left, X not yet.");
  keys.read_if(to.kind == enrolment_kind::table, "only enrolment.kind = \"table\"");
  const bool grows = to.kind == enrolment_kind::growing, comes_and_goes = to.kind == enrolment_kind::random;
  keys.integer("initial", to.initial, {.low = 1}, "growing: clients of the first task, the lowest ids.");
  keys.read_if(grows, "only enrolment.kind = \"growing\"");
  keys.integer("added_per_task", to.added_per_task, {.low = 0},
               "growing: clients added with each further task, in id order.");
  keys.read_if(grows, "only enrolment.kind = \"growing\"");
  keys.duration("arrival_mean", to.arrival_mean, "random: mean time until a client enrols (exponential).");
  keys.read_if(comes_and_goes, "only enrolment.kind = \"random\"");
  keys.duration("lifetime_mean", to.lifetime_mean, "random: mean time until it leaves.");
  keys.read_if(comes_and_goes, "only enrolment.kind = \"random\"");
  keys.duration("absence_mean", to.absence_mean, "random: mean time until it comes back; \"0 s\": it never does.");
  keys.read_if(comes_and_goes, "only enrolment.kind = \"random\"");
  keys.choice("rejoin", to.rejoin,
              {{"with-memory", rejoining::with_memory}, {"without-memory", rejoining::without_memory}},
              "random: whether who comes back still has what it remembered.");
  keys.read_if(comes_and_goes && to.absence_mean.count() > 0, "only enrolment.kind = \"random\" with an absence_mean");
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
  keys.read_if(async, in_async);
  keys.integer("buffer", to.buffer, {.low = 1, .high = 1'000'000'000}, "fedbuff: uploads of a server step.");
  keys.read_if(async && buffers, of_fedbuff);
  keys.integer("concurrency", to.concurrency, {.low = 1},
               "async: clients in flight; if not given, the smaller of 100 and clients.count.");
  keys.unless_given([&of_run] {
    if (of_run.rounds.mode == round_mode::async)
      of_run.rounds.concurrency = std::min<std::int64_t>(100, of_run.clients.count);
  });
  keys.read_if(async, in_async);
  keys.choice("staleness", to.staleness,
              {{"polynomial", staleness_kind::polynomial},
               {"constant", staleness_kind::constant},
               {"hinge", staleness_kind::hinge}},
              "async: weight of an upload that is s server steps old: (1 + s)^-a, 1, or 1 up to b steps and "
              "1 / (a (s - b) + 1) beyond.");
  keys.read_if(async, in_async);
  keys.number("staleness_exponent", to.staleness_exponent, {.low = 0.0}, "async: a.");
  keys.read_if(async && to.staleness != staleness_kind::constant,
               "only rounds.staleness = \"polynomial\" and \"hinge\"");
  keys.integer("staleness_bound", to.staleness_bound, {.low = 0}, "hinge: b.");
  keys.read_if(async && to.staleness == staleness_kind::hinge, "only rounds.staleness = \"hinge\"");
  keys.number("mixing", to.mixing, {.low = 0.0, .high = 1.0, .open_low = true},
              "fedasync: how far a step goes towards an upload that is not stale.");
  keys.read_if(async && !buffers, "only rounds.aggregation = \"fedasync\" with rounds.mode = \"async\"");
  keys.number("server_learning_rate", to.server_learning_rate, {.low = 0.0, .open_low = true},
              "fedbuff: how far a step goes along the mean change of its uploads.");
  keys.read_if(async && buffers, of_fedbuff);
}

section_keys rounds_keys(scenario& of_run) {
  auto& to = of_run.rounds;
  section_keys keys;
  keys.choice("mode", to.mode, {{"sync", round_mode::sync}, {"async", round_mode::async}},
              "Rounds that wait for their cohort, or a server that steps as uploads come and sends clients off again.");
  keys.integer("per_task", to.per_task, {.low = 1, .high = 1'000'000'000},
               "Rounds (async: server steps) of a task, unless the method sets its own.");
  keys.integer("cohort", to.cohort, {.low = 0},
               "Clients per round; 0: all available; if not given, the smaller of 10 and clients.count.");
  keys.unless_given([&of_run] {
    if (of_run.rounds.mode == round_mode::sync)
      of_run.rounds.cohort = std::min<std::int64_t>(10, of_run.clients.count);
  });
  const bool waits = to.mode == round_mode::sync;
  keys.read_if(waits, "only rounds.mode = \"sync\"");
  keys.duration("deadline", to.deadline,
                "From the opening of the round; \"0 s\": wait for everybody who has not dropped out.");
  keys.read_if(waits, "only rounds.mode = \"sync\"");
  keys.choice(
      "late", to.late, {{"drop", late_policy::drop}, {"keep", late_policy::keep}},
      "What happens to work that misses the deadline: abandoned, or folded into the round open when it arrives.");
  keys.read_if(waits && to.deadline.count() > 0, "only rounds with a deadline");
  async_keys(keys, of_run);
  return keys;
}

/// Profiles, traces, and the server's shared bandwidth.
void later_devices_keys(section_keys& keys, scenario& of_run) {
  auto& to = of_run.devices;
  const bool follows_trace = to.availability == device_availability::file || !to.link_file.empty();
  keys.profiles("profiles", to.profiles,
                "Devices that clients are drawn from: by name (`mneme list devices`), or files as `mneme calibrate` "
                "writes them; `link` names the profile whose links stand in place of the device's own; shares are "
                "relative. Empty: rows_per_second and the links above hold for all.");
  keys.added_later();
  keys.path("capacity_file", to.capacity_file,
            "CSV with a header naming `client` and any of `profile`, `rows_per_second`, `uplink_mbit` and "
            "`downlink_mbit`, which hold for the clients that it names in place of profiles and keys; `profile` is the "
            "place in devices.profiles, from 0, of the one that a client has without a draw.");
  keys.added_later();
  keys.path("link_file", to.link_file,
            "CSV with a header naming `client`, `from`, `to` (seconds), `uplink_mbit` and `downlink_mbit`: links that "
            "change over time; between its spans nothing moves over a client's link. Clients it does not name have "
            "the links above.");
  keys.added_later();
  keys.choice(
      "trace_end", to.trace_end, {{"stop", trace_end_rule::stop}, {"repeat", trace_end_rule::repeat}},
      "Behind the last span of a client in availability_file and link_file: it is never reached again, and "
      "nothing moves over its link, so that a run that waits for it fails, in words; or the spans begin again.");
  keys.read_if(follows_trace, "only devices.availability = \"file\" and devices.link_file");
  keys.added_later();
  keys.duration("trace_period", to.trace_period,
                "repeat: how long a trace is; \"0 s\": its column `period` if it has one, else up to the client's last "
                "`to`.");
  keys.read_if(follows_trace && to.trace_end == trace_end_rule::repeat, "only devices.trace_end = \"repeat\"");
  keys.added_later();
  keys.number("server_uplink_mbit", to.server_uplink_mbit, {.low = 0.0, .high = 1e9},
              "Megabits per second that all uploads to the server share, each in equal parts as far as its own link "
              "takes them (max-min fair); 0: no limit.");
  keys.added_later();
  keys.number("server_downlink_mbit", to.server_downlink_mbit, {.low = 0.0, .high = 1e9},
              "The same of all downloads from the server.");
  keys.added_later();
}

section_keys devices_keys(scenario& of_run) {
  auto& to = of_run.devices;
  const auto& method = of_run.strategy.method;
  const bool has_proxy = method && method->needs().has_proxy;
  section_keys keys;
  keys.device("rows_per_second", to.rows_per_second, {.low = 0.0, .open_low = true},
              "Training rows a device works off.");
  keys.read_if(to.profiles.empty(), "only devices without devices.profiles");
  keys.device("uplink_mbit", to.uplink_mbit, {.low = 0.0},
              "Megabits per second from device to server; 0: instantaneous.");
  keys.device("downlink_mbit", to.downlink_mbit, {.low = 0.0},
              "Megabits per second from server to device; 0: instantaneous.");
  keys.device("proxy_uplink_mbit", to.proxy_uplink_mbit, {.low = 0.0},
              "The same from device to proxy, for methods that have one.");
  keys.read_if(has_proxy, "only methods with a proxy");
  keys.device("proxy_downlink_mbit", to.proxy_downlink_mbit, {.low = 0.0}, "The same from proxy to device.");
  keys.read_if(has_proxy, "only methods with a proxy");
  keys.flag("observing_costs", to.observing_costs,
            "Whether clients that look at their rows outside the cohort, as some methods let them, take a download "
            "and time.");
  keys.duration("latency", to.latency, "Added to every transfer.");
  keys.number("dropout", to.dropout, {.low = 0.0, .high = 1.0}, "Chance that an assignment is never answered.");
  keys.choice("availability", to.availability,
              {{"always", device_availability::always},
               {"diurnal", device_availability::diurnal},
               {"file", device_availability::file}},
              "When devices can be given work: always, half of every period from a time of their own, or by a file.");
  keys.duration("availability_period", to.availability_period, "diurnal: the length of a day.");
  keys.read_if(to.availability == device_availability::diurnal, "only devices.availability = \"diurnal\"");
  keys.path("availability_file", to.availability_file,
            "file: CSV with a header naming `client`, `from` and `to`, in seconds; who is not named is never there.");
  keys.read_if(to.availability == device_availability::file, "only devices.availability = \"file\"");
  keys.choice("wire", to.wire,
              {{"fp32", wire_format::fp32},
               {"fp16", wire_format::fp16},
               {"bf16", wire_format::bf16},
               {"int8", wire_format::int8}},
              "What float32 tensors are converted to for a transfer, and back.");
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
      (forward_rows_per_second for jobs that only look at rows; 0: three times as many), else
      B / max(B * operations of a row / flops_per_second, bytes of a step / bytes_per_second)
      with the net's own count of products and convolutions, two operations for each multiplication and
      its addition, forward and backward, and of the bytes that a step touches; a forward pass is counted
      by its own operations and a third of the bytes.
  a download or upload of b bytes
      latency + jitter + 8 b / (mbit * 1e6) s; of links in link_file until their spans have let so many
      bits pass; where the server's link is shared, until the transfer's parts of it have.
A profile is drawn for each client by the shares; jitter for each of its transfers.)";

} // namespace

const std::vector<partition_word>& partition_words() {
  using enum partition_kind;
  static const std::vector<partition_word> words{
      {"dirichlet", dirichlet, "each class is shared out by a Dirichlet draw over clients (beta)"},
      {"iid", iid, "rows at random, in equal numbers"},
      {"dirichlet-capped", dirichlet_capped,
       "dirichlet with a cap on a client's rows, drawn again until nobody is empty (beta)"},
      {"balanced", balanced, "each class dealt in turn: sizes within one row"},
      {"shards", shards, "rows sorted by class and cut into pieces, dealt at random (shards_per_client)"},
      {"class-share", class_share,
       "each client holds the rows of some of the task's classes (class_share); replicated"},
      {"sampled", sampled, "each client draws its rows of the task when it needs them (rows_per_client); replicated"},
      {"file", file, "a CSV says which client holds which row (file)"},
  };
  return words;
}

std::vector<section> federation_sections(scenario& into) {
  std::vector<section> sections;
  sections.push_back({"data", "The data set and how much of it is used.", data_keys(into.data)});
  sections.push_back({"tasks", "What changes from task to task.", tasks_keys(into.tasks)});
  sections.push_back({"partition", "Which rows each client holds.", partition_keys(into.partition)});
  sections.push_back({"clients", "The population.", clients_keys(into.clients)});
  sections.push_back({"enrolment", "Who takes part in which task.", enrolment_keys(into.enrolment)});
  sections.push_back({"rounds", "How a task is worked through.", rounds_keys(into)});
  sections.push_back({"devices",
                      "Speed and reliability of clients: a number for all, a list with one per client, or "
                      "{ median, sigma } of a log-normal.",
                      devices_keys(into), times_of_devices});
  return sections;
}

} // namespace mneme

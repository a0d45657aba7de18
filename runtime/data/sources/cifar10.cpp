// CIFAR-10: 32x32 color photographs (Krizhevsky 2009), binary version.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/records.hpp"
#include "runtime/data/splits.hpp"
namespace mneme {
namespace {

const file_set cifar10_files{.data_set = "cifar10",
                             .folders = {"cifar-10-batches-bin", "cifar10/cifar-10-batches-bin", "cifar10"},
                             .names = {{"data_batch_1.bin"},
                                       {"data_batch_2.bin"},
                                       {"data_batch_3.bin"},
                                       {"data_batch_4.bin"},
                                       {"data_batch_5.bin"},
                                       {"test_batch.bin"}},
                             .remedy = "`tools/fetch_data cifar10` downloads them."};
const record_layout cifar10_layout{.label_bytes = 1, .label_at = 0, .classes = 10};

expected<raw_data> load_cifar10(const data_section& data, const std::vector<std::filesystem::path>& roots) {
  const auto files = find_files(cifar10_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  return with_splits(
      {.name = "cifar10",
       .classes = cifar10_layout.classes,
       .class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
       .mean = {0.4914, 0.4822, 0.4465},
       .deviation = {0.2470, 0.2435, 0.2616}},
      read_records({files->begin(), files->end() - 1}, cifar10_layout, train_limits(data)),
      read_records({files->back()}, cifar10_layout, test_limits(data)));
}

const source_registration cifar10_line{
    {.name = "cifar10",
     .summary = "50,000 + 10,000 photographs, color 32x32, 10 classes; tools/fetch_data cifar10",
     .files = cifar10_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_cifar10(data, roots); }}};

} // namespace
} // namespace mneme

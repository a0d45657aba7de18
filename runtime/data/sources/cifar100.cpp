// CIFAR-100: 32x32 color photographs (Krizhevsky 2009), binary version. The classes are the 100 fine labels; the coarse
// label before each is ignored.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/records.hpp"
#include "runtime/data/splits.hpp"
namespace mneme {
namespace {

const file_set cifar100_files{.data_set = "cifar100",
                              .folders = {"cifar-100-binary", "cifar100/cifar-100-binary", "cifar100"},
                              .names = {{"train.bin"}, {"test.bin"}},
                              .remedy = "`tools/fetch_data cifar100` downloads them."};
const record_layout cifar100_layout{.label_bytes = 2, .label_at = 1, .classes = 100};

expected<raw_data> load_cifar100(const data_section& data, const std::vector<std::filesystem::path>& roots) {
  const auto files = find_files(cifar100_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  return with_splits({.name = "cifar100",
                      .classes = cifar100_layout.classes,
                      .mean = {0.5071, 0.4867, 0.4408},
                      .deviation = {0.2675, 0.2565, 0.2761}},
                     read_records({files->front()}, cifar100_layout, train_limits(data)),
                     read_records({files->back()}, cifar100_layout, test_limits(data)));
}

const source_registration cifar100_line{
    {.name = "cifar100",
     .summary = "50,000 + 10,000 photographs, color 32x32, 100 classes; tools/fetch_data cifar100",
     .files = cifar100_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_cifar100(data, roots); },
     .classes = 100}};

} // namespace
} // namespace mneme

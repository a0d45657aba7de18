/// load_module: from a file that another program has written to a net that a run can rely on.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/modules/module_net.hpp"
#include <filesystem>
namespace mneme {

/// Protection against a module's file. Only tests turn one layer off, to test the other alone.
struct module_layers {
  bool checks = true;                 ///< TorchScript: code, pickles and graph are checked before any of it runs.
  bool cell = true;                   ///< A process without rights loads and tries the file first.
  std::int64_t cell_seconds = 0;      ///< Processor time of the cell; 0: as many as suit the file's size.
  std::int64_t cell_memory_bytes = 0; ///< As above.
};

/// Requirements of a run on a module.
struct module_demands {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row; not read where the module says its own.
  row_form form = row_form::images;    ///< As forward() takes rows.
  std::int64_t tokens = 0;             ///< row_form::tokens: exclusive upper bound of tokens.
  bool own_rows = false;               ///< The module has a member `rows`, [B, C, H, W]: at most B rows in a call.
  std::int64_t classes = 0;            ///< Those of the run; 0: features are wanted, without a head.
  bool scores = false;                 ///< forward() returns scores of the classes, not features.
  head_kind head = head_kind::linear;
  bool trained = false;     ///< Its parameters are to be trained.
  bool training = false;    ///< While it is trained, batch norms and dropout are in training mode if they are so in the
                            ///< file.
  bool native_code = false; ///< It may be loaded without a cell if the machine supports none.
  std::string device = "cpu";
  module_layers layers{};
};

/// Reads a file of torch.export.save or torch.jit.save, and runs the module on synthetic rows of the run's shape: it
/// has to return [rows, D] float32 numbers, all finite, the same ones twice, and those of a row must not depend on the
/// other rows of the call. Every difference is a diagnostic with the file's name, and its byte if the archive is
/// damaged.
[[nodiscard]] expected<std::shared_ptr<const module_net>> load_module(const std::filesystem::path& file,
                                                                      const module_demands& demands);

} // namespace mneme

#include "actors/run/checkpoint_writer.hpp"
#include "runtime/base/failure_of.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

checkpoint_writer_actor::behavior_type checkpoint_writer_state::make_behavior() {
  return {
      [this](const write_checkpoint& checkpoint) -> caf::result<void> {
        if (const auto why = failure_of([&] { folder_->write(checkpoint.parts); }); !why.empty())
          return caf::make_error(run_errc::recorder_failed,
                                 why + "; the run continues, and earlier checkpoints are intact");
        return {};
      },
  };
}

} // namespace mneme

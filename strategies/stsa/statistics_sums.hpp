/// statistics_sums: what the server of STSA and of STSA-E knows of all tasks: G and C of the ridge regression.
#pragma once
#include "runtime/method/strategy.hpp"
#include "strategies/stsa/gram_estimate.hpp"
#include "strategies/stsa/mask_ring.hpp"
namespace mneme {

// Axes: M random features, C classes of the run, c classes of a task, P dummy clients of a client.

/// G [M, M], as a triangle (triangle.hpp), and C transposed [C, M], both float64, summed over clients and tasks. Each
/// client sends its statistics of a task once.
class statistics_sums {
public:
  struct size {
    std::int64_t width = 0;   ///< M
    std::int64_t classes = 0; ///< C
  };
  explicit statistics_sums(size of_sums) : size_(of_sums) {}
  virtual ~statistics_sums() = default;

  /// Takes what one client sends of the open task, in delivery order.
  virtual void add(const delivery& in) = 0;
  /// Takes what comes after the end of its task, which had these classes; what cannot be told any more is left out.
  virtual void add_late(const delivery& in, class_range classes) = 0;
  /// Every client's statistics of the open task have come: they enter G and C.
  virtual task<void> end_task(server_context& ctx, const round_place& place) = 0;
  /// Adds the uplink of one client over all tasks so far, in MiB, as the paper counts it (Table 5; its "MB" are MiB).
  virtual void add_figures(std::map<std::string, double>& figures) const = 0;

  [[nodiscard]] const at::Tensor& gram() const noexcept { return gram_; }
  [[nodiscard]] const at::Tensor& sums() const noexcept { return sums_; }
  virtual void persist(archive& state);

protected:
  /// Makes G and C, all zeros, unless they are there.
  void begin(const at::TensorOptions& options);
  void note_task(const round_place& place);
  [[nodiscard]] double tasks_ended() const noexcept { return tasks_ended_; }
  /// The sum of c over the tasks that have ended.
  [[nodiscard]] double classes_ended() const noexcept { return classes_ended_; }
  [[nodiscard]] double width() const noexcept { return static_cast<double>(size_.width); }

  size size_;
  at::Tensor gram_, sums_; // undefined before the first statistics

private:
  double tasks_ended_ = 0.0, classes_ended_ = 0.0;
};

/// STSA: uploads hold "gram", G_k, and "sums", C_k [1, c, M], so that sums are exact.
class exact_sums final : public statistics_sums {
public:
  struct rules {
    bool masked = false; ///< Uploads are integers under masks that cancel in their sum (mask_ring.hpp).
    bool noisy = false;  ///< An upload without rows is noise then, and no zeros.
    mask_ring ring{};    ///< Its key lacks the task and the tensor.
  };
  exact_sums(size of_sums, const rules& with) : statistics_sums(of_sums), rules_(with) {}
  void add(const delivery& in) override;
  /// Late uploads enter the sums of their own classes, unless they are masked: then their masks are gone.
  void add_late(const delivery& in, class_range classes) override;
  task<void> end_task(server_context& ctx, const round_place& place) override;
  void add_figures(std::map<std::string, double>& figures) const override;
  void persist(archive& state) override;

private:
  /// An upload of zeros.
  [[nodiscard]] bool is_empty(const delivery& in) const { return in.rows == 0 && !rules_.noisy; }
  void unmask(task_id task);

  rules rules_;
  at::Tensor masked_gram_, task_sums_; // those of the open task
  std::vector<client_id> present_;     // whose statistics have come in the open task
};

/// STSA-E: uploads hold "sums", C_k [P, c, M], and "counts" [P, c], part by part; G is estimated from them.
class estimated_sums final : public statistics_sums {
public:
  estimated_sums(size of_sums, std::int64_t dummies, const estimate_rules& rules)
      : statistics_sums(of_sums), dummies_(dummies), rules_(rules) {}
  void add(const delivery& in) override;
  /// The parts of a task are estimated together, so what is late is left out.
  void add_late(const delivery& /*in*/, class_range /*classes*/) override {}
  task<void> end_task(server_context& ctx, const round_place& place) override;
  void add_figures(std::map<std::string, double>& figures) const override;
  void persist(archive& state) override;

private:
  std::int64_t dummies_; // P
  estimate_rules rules_;
  held_sums held_;           // those of the open task
  std::int64_t clients_ = 0; // whose statistics have come in the open task
};

} // namespace mneme

/// statistics_sums: the ridge regression's sums G and C over all tasks, on the server of STSA and STSA-E.
#pragma once
#include "runtime/method/strategy.hpp"
#include "strategies/stsa/gram_estimate.hpp"
#include "strategies/stsa/mask_ring.hpp"
namespace mneme {

// Axes: M random features, C classes of the run, c classes of a task, P dummy clients per client.

/// Sums over clients and tasks: G [M, M], as a triangle (triangle.hpp), and C transposed, [C, M], both float64. Each
/// client uploads its statistics of a task once.
class statistics_sums {
public:
  struct size {
    std::int64_t width = 0;   ///< M
    std::int64_t classes = 0; ///< C
  };
  explicit statistics_sums(size of_sums) : size_(of_sums) {}
  virtual ~statistics_sums() = default;

  /// Adds a client's statistics of the open task. Call it in delivery order.
  virtual void add(const delivery& in) = 0;
  /// Adds statistics that arrive after the end of their task. Statistics that can no longer be separated are ignored.
  /// @param classes the classes of that task
  virtual void add_late(const delivery& in, class_range classes) = 0;
  /// Adds the statistics of the open task to G and C, after all uploads of the task.
  virtual task<void> end_task(server_context& ctx, const round_info& info) = 0;
  /// Adds the metric of a client's upload over all finished tasks, in MiB, as the paper counts it (Table 5, whose "MB"
  /// are MiB).
  virtual void add_figures(std::map<std::string, double>& figures) const = 0;

  [[nodiscard]] const at::Tensor& gram() const noexcept { return gram_; }
  [[nodiscard]] const at::Tensor& sums() const noexcept { return sums_; }
  virtual void persist(archive& state);

protected:
  /// Allocates G and C as zeros, if undefined.
  void begin(const at::TensorOptions& options);
  void record_task(const round_info& info);
  [[nodiscard]] double tasks_ended() const noexcept { return tasks_ended_; }
  /// Sum of c over the finished tasks.
  [[nodiscard]] double classes_ended() const noexcept { return classes_ended_; }
  [[nodiscard]] double width() const noexcept { return static_cast<double>(size_.width); }

  size size_;
  at::Tensor gram_, sums_; // undefined before the first statistics

private:
  double tasks_ended_ = 0.0, classes_ended_ = 0.0;
};

/// STSA: an upload has "gram", G_k, and "sums", C_k [1, c, M]. The sums are exact.
class exact_sums final : public statistics_sums {
public:
  struct rules {
    bool masked = false; ///< True: uploads are integers with masks that cancel in the sum (mask_ring.hpp).
    bool noisy = false;  ///< True: an upload without rows is noise instead of zeros.
    mask_ring ring{};    ///< Ring whose key has neither task nor tensor index yet.
  };
  exact_sums(size of_sums, const rules& rules) : statistics_sums(of_sums), rules_(rules) {}
  void add(const delivery& in) override;
  /// Adds late uploads to the sums of their own classes. Masked late uploads are ignored, because their masks were
  /// already removed.
  void add_late(const delivery& in, class_range classes) override;
  task<void> end_task(server_context& ctx, const round_info& info) override;
  void add_figures(std::map<std::string, double>& figures) const override;
  void persist(archive& state) override;

private:
  /// True if an upload has only zeros.
  [[nodiscard]] bool is_empty(const delivery& in) const { return in.rows == 0 && !rules_.noisy; }
  void unmask(task_id task);

  rules rules_;
  at::Tensor masked_gram_, task_sums_; // sums of the open task
  std::vector<client_id> present_;     // clients with statistics in the open task
};

/// STSA-E: an upload has "sums", C_k [P, c, M], and "counts" [P, c] of its P parts. G is estimated from them.
class estimated_sums final : public statistics_sums {
public:
  estimated_sums(size of_sums, std::int64_t dummies, const estimate_rules& rules)
      : statistics_sums(of_sums), dummies_(dummies), rules_(rules) {}
  void add(const delivery& in) override;
  /// Ignores late statistics, because all parts of a task are estimated together.
  void add_late(const delivery& /*in*/, class_range /*classes*/) override {}
  task<void> end_task(server_context& ctx, const round_info& info) override;
  void add_figures(std::map<std::string, double>& figures) const override;
  void persist(archive& state) override;

private:
  std::int64_t dummies_; // P
  estimate_rules rules_;
  held_sums held_;           // sums of the open task
  std::int64_t clients_ = 0; // number of clients with statistics in the open task
};

} // namespace mneme

#include "runtime/base/check.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/data/partition_kinds.hpp"
#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
namespace mneme {
namespace {

/// What a line says; numbers as in the file.
struct entry {
  std::int64_t client = -1, row = -1;
  std::int64_t task = 0;  ///< From 1; 0: every task that holds the row.
  std::int64_t mark = -1; ///< Value in the method's column.
};

/// Columns of interest, in the order of the header.
struct header {
  std::vector<std::int64_t entry::*> columns{}; ///< Null: a column of no interest.
  [[nodiscard]] bool has(std::int64_t entry::*checked) const {
    return std::find(columns.begin(), columns.end(), checked) != columns.end();
  }
};

class reader {
public:
  reader(const scenario& from, const task_stream& tasks, const row_mark_column& marks)
      : path_(from.partition.file.string()), clients_(from.clients.count), tasks_(tasks), marks_(marks) {
    MNEME_CHECK(clients_ > 0, clients_);
    for (const auto& task : tasks.tasks) {
      said_.owned.emplace_back(task.train.size(), no_client);
      if (!marks_.name.empty())
        said_.marks.emplace_back(task.train.size(), 0);
    }
    number_rows();
  }

  expected<filed_split> read(std::string_view text) {
    text = csv::without_mark(text);
    const auto named = read_header(csv::next_line(text));
    if (!named)
      return tl::unexpected(named.error());
    for (line_ = 2; !text.empty() && wrong_.size() < csv::diagnostics_max; ++line_)
      if (const auto line = csv::next_line(text); !line.empty())
        if (const auto row = parsed(line, *named))
          assign(*row);
    if (!wrong_.empty())
      return tl::unexpected(std::move(wrong_));
    return std::move(said_);
  }

private:
  void wrong(std::string text) { wrong_.push_back({path_ + ":" + std::to_string(line_), std::move(text)}); }

  expected<header> read_header(std::string_view line) {
    header columns;
    std::string names;
    while (!line.empty()) {
      const auto name = csv::next_field(line);
      std::int64_t entry::*column = nullptr;
      if (name == "client")
        column = &entry::client;
      else if (name == "row")
        column = &entry::row;
      else if (name == "task")
        column = &entry::task;
      else if (!marks_.name.empty() && name == marks_.name)
        column = &entry::mark;
      if (column && columns.has(column))
        return failed(path_ + ":1", "the header names the column '" + std::string(name) + "' twice; expected it once");
      columns.columns.push_back(column);
      names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
    }
    for (const auto& [name, column] : {std::pair{"client", &entry::client}, {"row", &entry::row}})
      if (!columns.has(column))
        return failed(path_ + ":1", std::string("the header names no column '") + name + "' but " +
                                        (names.empty() ? "nothing" : names) +
                                        "; expected a first line such as client,row or client,row,task");
    if (!marks_.name.empty() && !columns.has(&entry::mark))
      return failed(path_ + ":1", "the header names no column '" + marks_.name + "' but " + names +
                                      "; expected one, since strategy keys ask for it");
    return columns;
  }

  std::optional<entry> parsed(std::string_view line, const header& named) {
    entry row;
    for (std::size_t column = 0; column < named.columns.size(); ++column) {
      if (line.empty() && column > 0 && named.columns[column]) {
        wrong("the line has " + std::to_string(column) + " of " + std::to_string(named.columns.size()) +
              " fields; expected one for each column of the header");
        return std::nullopt;
      }
      const auto field = csv::next_field(line);
      if (!named.columns[column])
        continue;
      auto& value = row.*named.columns[column];
      if (!csv::is_number(field, value)) {
        wrong("found '" + std::string(field) + "' where a " + name_of(named.columns[column]) +
              " is due; expected a whole number");
        return std::nullopt;
      }
    }
    if (!line.empty()) {
      wrong("the line has more than " + std::to_string(named.columns.size()) +
            " fields; expected one for each column of the header");
      return std::nullopt;
    }
    if (named.has(&entry::task) && (row.task < 1 || row.task > std::ssize(tasks_.tasks))) {
      wrong("task " + std::to_string(row.task) + " does not exist; expected 1.." + std::to_string(tasks_.tasks.size()) +
            " (tasks count from 1)");
      return std::nullopt;
    }
    if (!marks_.name.empty() && (row.mark < 0 || row.mark >= marks_.below)) {
      wrong(marks_.name + " " + std::to_string(row.mark) + " does not exist; expected 0.." +
            std::to_string(marks_.below - 1));
      return std::nullopt;
    }
    return row;
  }

  std::string name_of(std::int64_t entry::*column) const {
    if (column == &entry::mark)
      return marks_.name;
    return column == &entry::client ? "client" : column == &entry::row ? "row" : "task";
  }

  /// Gives the row to the client, in the task named or in every task that holds it.
  void assign(const entry& given) {
    if (given.client < 0 || given.client >= clients_)
      return wrong("client " + std::to_string(given.client) + " does not exist; expected 0.." +
                   std::to_string(clients_ - 1) + " (clients.count = " + std::to_string(clients_) + ")");
    const auto row = numbered(given.row);
    if (row < 0)
      return wrong("row " + std::to_string(given.row) + " does not exist among the " +
                   std::to_string(tasks_.train->files_rows()) + " training rows of the run" +
                   "; expected a row of the original training file that data.train_rows and data.train_per_class keep");
    const auto& tasks = tasks_.tasks;
    const auto wrong_before = wrong_.size();
    bool held = false;
    for (std::size_t t = 0; t < tasks.size() && wrong_.size() == wrong_before; ++t)
      if (given.task == 0 || given.task == static_cast<std::int64_t>(t) + 1)
        held |= own(t, row, given);
    if (!held && given.task > 0)
      wrong("row " + std::to_string(given.row) + " is not a row of task " + std::to_string(given.task) +
            "; expected a row of its classes or domain, or no task column");
  }

  /// False if the task does not hold the row.
  bool own(std::size_t task, std::int64_t row, const entry& line) {
    const auto position = position_[task * per_task() + static_cast<std::size_t>(row)];
    if (position == no_client)
      return false;
    auto& owner = said_.owned[task][position];
    if (owner != no_client)
      wrong("row " + std::to_string(line.row) + " is given to client " + std::to_string(line.client) +
            " and, in an earlier line, to client " + std::to_string(owner) + " (task " + std::to_string(task + 1) +
            "); expected each row once per task");
    owner = static_cast<std::uint32_t>(line.client);
    if (!marks_.name.empty())
      said_.marks[task][position] = static_cast<std::int32_t>(line.mark);
    return true;
  }

  /// Row of the run for a row of the original file, or -1.
  [[nodiscard]] std::int64_t numbered(std::int64_t file_row) const {
    const auto& kept = tasks_.train->file_rows;
    if (kept.empty())
      return file_row >= 0 && file_row < tasks_.train->files_rows() ? file_row : -1;
    const auto place = std::lower_bound(kept.begin(), kept.end(), file_row);
    return place != kept.end() && *place == file_row ? place - kept.begin() : -1;
  }

  [[nodiscard]] std::size_t per_task() const { return static_cast<std::size_t>(tasks_.train->files_rows()); }

  /// Fills position_.
  void number_rows() {
    position_.assign(tasks_.tasks.size() * per_task(), no_client);
    for (std::size_t t = 0; t < tasks_.tasks.size(); ++t)
      for (row_position at = 0; at < tasks_.tasks[t].train.size(); ++at)
        position_[t * per_task() + static_cast<std::size_t>(tasks_.tasks[t].train[at]) % per_task()] = at;
  }

  std::string path_;
  std::int64_t clients_;
  const task_stream& tasks_;
  std::vector<row_position> position_; // by task and file row
  row_mark_column marks_;              // of the method
  filed_split said_;
  std::size_t line_ = 1;
  diagnostics wrong_;
};

} // namespace

expected<filed_split> read_partition_file(const scenario& from, const task_stream& tasks,
                                          const row_mark_column& marks) {
  const auto where = from.where("partition.file");
  if (from.partition.file.empty())
    return failed(where,
                  "partition.kind = \"file\" needs a file and found \"\"; expected partition.file = \"rows.csv\", "
                  "a CSV file with the columns client and row");
  std::ifstream file(from.partition.file, std::ios::binary);
  if (!file)
    return failed(where, "cannot read '" + from.partition.file.string() +
                             "'; expected a CSV file with the columns client and row");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return reader(from, tasks, marks).read(text);
}

} // namespace mneme

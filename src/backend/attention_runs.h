#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/step_plan.h"
#include "plan/visible_tokens.h"

namespace anyslot {

/// The rows of one sequence that a plan is made for.
struct SelectedRows {
  int32_t begin = 0;  // into row_indices
  int32_t end = 0;
  int64_t min_position = 0;
  int64_t max_position = 0;

  int32_t size() const { return end - begin; }
};

/// Members that read the same spans. A member is a sequence; one that was given the spans twice is
/// two.
struct AttentionRun {
  int32_t member_begin = 0;  // into AttentionRuns::members
  int32_t member_end = 0;
  int32_t span_begin = 0;  // into AttentionRuns::spans
  int32_t span_end = 0;

  int32_t num_members() const { return member_end - member_begin; }
};

struct AttentionRuns {
  std::vector<SelectedRows> selected;  // of each sequence of the step
  std::vector<AttentionRun> runs;
  std::vector<int32_t> members;  // sequences, ascending within a run
  /// Of each span of a run, the index into `placements` of its first member's; those of the other
  /// members follow.
  std::vector<int32_t> spans;
  std::vector<int32_t> placements;  // indices into StepPlan::placements
};

/// Finds which placements of different sequences are the same keys, and which of these are read by
/// the same sequences. A sequence with at least `private_rows` rows fills work items alone and
/// shares nothing.
class AttentionRunFinder {
 public:
  /// The result is valid until the next call. Placements that no selected row sees are left out.
  const AttentionRuns& find(const StepPlan& step, std::span<const int32_t> row_indices,
                            int64_t window, int32_t private_rows);

 private:
  /// A placement that some row of its sequence sees.
  struct Use {
    int32_t sequence;
    int32_t placement;
    int32_t group;
  };
  /// Uses of the same keys.
  struct Group {
    uint64_t readers;   // hash of its sequences
    int32_t placement;  // of its first use
    int32_t run;
    int32_t begin;  // into placements and members of the result
    int32_t end;
  };
  /// A hash table of indices; what they stand for is compared by the caller.
  class IndexTable {
   public:
    void reset(size_t max_entries);
    /// The index stored under an equal hash for which same(index) holds; else stores and returns
    /// `fresh`.
    template <typename Same>
    int32_t find_or_insert(uint64_t hash, int32_t fresh, Same same);

   private:
    struct Slot {
      uint64_t hash;
      int32_t index;  // -1: free
    };
    std::vector<Slot> slots_;
  };

  void select_rows(const StepPlan& step, std::span<const int32_t> row_indices);
  void collect_uses(const StepPlan& step, int64_t window, int32_t private_rows);
  int32_t group_of(const StepPlan& step, int32_t placement, bool shared);
  void list_members_of_groups();
  void join_groups_into_runs();
  void list_spans_of_runs();

  AttentionRuns result_;
  std::vector<Use> uses_;
  std::vector<Group> groups_;
  IndexTable table_;
};

}  // namespace anyslot

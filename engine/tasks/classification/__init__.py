"""Classification: labels are encoded, matched and tallied here."""

from ..task import Counting, LateNotes, RowFiles, RowsApart, Task
from .counting import count, counts_suffice, merge_counted
from .explaining import explain
from .filing import filed_part, files_suffice, of_files, shown_part, shows_datums
from .fitting import fit
from .merging import lean, merge
from .samples import samples
from .settings import Settings, default_metrics, resolve
from .tallies import Tallies, tally, weight_notes
from .views import cells_per_group, own_frames, view

__all__ = ["TASK", "Settings", "Tallies"]

TASK = Task(
    name="classification",
    settings=resolve,
    default_metrics=default_metrics,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view,
    cells_per_group=cells_per_group,
    own_frames=own_frames,
    explain=explain,
    samples=samples,
    late_notes=LateNotes(("zero_weights",), weight_notes),
    counting=Counting(counts_suffice, count, merge_counted),
    row_files=RowFiles(files_suffice, filed_part, of_files, shows_datums, shown_part),
    rows_apart=RowsApart(lean, merge),
    scratch_row=20,
)

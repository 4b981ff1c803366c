"""Classification: labels are encoded, matched and tallied here."""

from ..task import LateNotes, RowFiles, Task
from .explaining import explain
from .filing import (
    bytes_on_disk,
    filed_part,
    files_suffice,
    of_files,
    shown_part,
    shows_datums,
)
from .fitting import fit
from .merging import merge
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
    row_files=RowFiles(
        files_suffice, bytes_on_disk, filed_part, of_files, shows_datums, shown_part
    ),
)

"""Folders of trainings that need them no more."""

import shutil
from pathlib import Path

from vitscope.settings.snapshots import HISTORY_FILE, UNFINISHED

# Where trainings are, below the folder of results: of models, and of the steps of build-ups.
PLACES = ("*/training/*", "*/buildups/*/trained/*")


def remove_unfinished(results: Path) -> None:
    """Remove what trainings needed to go on, of those whose results are there.

    It is for the end of a run. A job must not do so itself: a run that is killed before it has
    taken note of the job runs it again, and a cluster may end a job when all is done.
    """
    for place in PLACES:
        for folder in results.glob(f"{place}/{UNFINISHED}"):
            # The last thing that a training writes.
            if (folder.parent / HISTORY_FILE).is_file():
                shutil.rmtree(folder)

"""Budget of an import: a thousand files of fio in 10 s.

Time of the processor as a multiple of what decoding the same JSON takes, so that the machine and
its load do not count. Measured on two cores: 3.0 s, 14 times; 10 s would be 45 times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from iojoule.datasets.importers.fio import import_fio
from tests.datasets.fio_runs import document

FILES, TIMES_DECODING = 1000, 30.0


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def test_a_thousand_files_are_imported_within_the_budget(tmp_path: Path) -> None:
    run = document("clones")
    for number in range(FILES):
        for job in run["jobs"]:
            job["job options"]["size"] = f"{number + 1}g"
        (tmp_path / f"{number}.json").write_text(json.dumps(run, indent=2))
    paths = list(tmp_path.iterdir())
    decoded = min(
        seconds(lambda: [json.loads(path.read_text()) for path in paths]) for _ in range(3)
    )
    imported = min(seconds(lambda: import_fio([tmp_path])) for _ in range(3))
    print(f"import of {FILES} files: {imported:.2f} s, decoding alone {decoded:.2f} s")
    assert len(import_fio([tmp_path])) == FILES
    assert imported <= TIMES_DECODING * decoded

"""The example notebook runs from top to bottom as it is shipped, without its outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This very interpreter as the kernel `python3`, and nothing of the user's own settings."""
    from ipykernel.kernelspec import write_kernel_spec

    folder = tmp_path / "kernels" / "python3"
    write_kernel_spec(str(folder), overrides={"argv": [
        sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
    ]})  # fmt: skip
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.mark.usefixtures("kernel")
def test_the_notebook_runs_and_says_what_it_promises() -> None:
    notebook = nbformat.read(EXAMPLES / "what_if.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "strip the outputs"
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}})
    client.execute()
    said = [str(cell.get("outputs")) for cell in notebook.cells if cell.cell_type == "code"]
    assert "power_watts" in said[1]
    assert "wait" in said[2]
    assert "simulated" in said[3]
    assert "'change.growth': 4.0" in said[4]

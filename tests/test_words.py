"""The language of the project: words and names that the field does not have may not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("datasets", "measure", "model", "sim", "recommender", "api")
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")])
SOURCES = [
    path
    for folder in FOLDERS
    for suffix in ("py", "cpp", "hpp", "c", "toml")
    for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))
    if not {"node_modules", "built", "build"} & set(path.relative_to(ROOT).parts)
]

# Not "moments", "places" or "told": they are ordinary words too.
EXPRESSIONS = re.compile(
    r"\b(beaten by|by luck|can carry|dearer|foretold|held against|nobody hears|not to be had"
    r"|side-cars?|winner's curse|without a word)\b",
    re.IGNORECASE,
)
"""Expressions for which the field has a term: dominated by, capacity, metadata file and so on."""

PERSONS = re.compile(r"\b(anybody|everybody|nobody|somebody|whoever)\b", re.IGNORECASE)
WITHOUT_PERSONS = ("datasets", "measure")
"""Folders whose text says what is unknown or unmeasured, and which user or program acts."""

NAMES = {
    *("asked", "beaten", "doubts", "found", "habits", "kept", "moments", "one", "ours", "places"),
    *("said", "sidecar", "theirs", "told", "traps"),
}
"""Names that do not say what a value is: it is a result, a request, a message, an index."""
PUBLISHED = {
    "datasets/contribution.py": {"said"},
    "datasets/verdict.py": {"said"},
    "measure/campaign/adaptive.py": {"told"},
    "model/evaluate/validity.py": {"said"},
}
"""Fields of files and responses, which keep their names."""
WITHOUT_NAMES = ("datasets", "measure", "model", "api/http")


def _within(path: Path, folders: tuple[str, ...]) -> bool:
    return path.relative_to(ROOT).parts[0] in folders


def _bound(tree: ast.AST) -> Iterator[str]:
    """Names that a module gives: variables, attributes, arguments, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _occurrences(words: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for word in words.findall(line)
    ]


def test_text_uses_the_terms_of_the_field() -> None:
    assert _occurrences(EXPRESSIONS, [*PAGES, *SOURCES]) == []
    assert _occurrences(PERSONS, [path for path in SOURCES if _within(path, WITHOUT_PERSONS)]) == []


@pytest.mark.parametrize("folder", WITHOUT_NAMES)
def test_names_say_what_they_hold(folder: str) -> None:
    conversational = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in _bound(ast.parse(path.read_text("utf-8")))
        if name.strip("_") in NAMES - PUBLISHED.get(str(path.relative_to(ROOT)), set())
    }
    assert conversational == set()

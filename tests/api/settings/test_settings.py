"""Settings of applications: every knob has one or a reason, and real programs accept them."""

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iojoule.api.settings import KNOBS, check_request, load, names, settings_of
from iojoule.datasets.errors import InputError
from iojoule.datasets.programs import optional_program
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Engine, impossible
from tests.postgresql import programs

VERSIONS = {
    "postgresql": ("9.6", "12", "15", "17", "18", "19"),
    "mysql": ("5.7.6", "8.0", "8.4"),
    "mariadb": ("10.5", "10.6", "10.11.19", "11.8"),
    "rocksdb": ("6.0", "7.1", "11.8"),
    "ceph": ("12", "16", "20"),
    "qemu": ("2.0", "4.2", "10.0"),
    "libvirt": ("3.0", "6.2", "11.0"),
    "fio": ("3.0", "3.13", "3.33"),
}


def configuration(engine: Engine, **changes: object) -> Configuration:
    depth = 1 if engine is Engine.PSYNC else 32
    stated = {"request_bytes": 16384, "queue_depth": depth, "jobs": 4}
    return Configuration.model_validate({**stated, "engine": engine, **changes})


def possible(engine: Engine) -> list[Configuration]:
    return [
        configuration(engine, completion=completion, submission_polling=polling)
        for completion, polling in itertools.product(("interrupt", "polled"), (False, True))
        if impossible(engine, completion, submission_polling=polling) is None
    ]


def test_every_application_has_its_versions_here() -> None:
    assert sorted(VERSIONS) == names()


@pytest.mark.parametrize("name", VERSIONS)
def test_every_knob_has_a_setting_or_a_stated_reason(name: str) -> None:
    for version, engine in itertools.product(VERSIONS[name], Engine):
        for one in possible(engine):
            stated = settings_of(f"{name}={version}", one, writes=True)
            carried = {line.carries for line in stated.settings}
            missing = {gap.knob: gap.reason for gap in stated.not_available}
            for knob in KNOBS:
                if getattr(one, knob) in (None, False, "interrupt"):
                    continue
                assert knob in carried or knob in missing, (version, engine, knob)
            assert "no such setting is known" not in missing.values(), (version, engine, missing)
            assert all(line.source and line.why for line in stated.settings)
            assert all(f"n/a {gap}" in stated.text for gap in missing)


@pytest.mark.parametrize("name", VERSIONS)
def test_nothing_that_weakens_durability_is_set(name: str) -> None:
    refused = {part for one in load(name).refused for part in one.name.split(", ")}
    assert refused or name == "fio"
    for engine in Engine:
        lines = settings_of(name, configuration(engine), writes=True).settings
        assert not {line.name for line in lines} & refused


def test_postgresql_has_no_libaio_and_io_uring_only_from_18_on() -> None:
    def engine(version: str, engine: Engine) -> tuple[str | None, list[str]]:
        stated = settings_of(f"postgresql={version}", configuration(engine), writes=False)
        values = {line.name: line.value for line in stated.settings}
        return values.get("io_method"), [one.knob for one in stated.not_available]

    assert engine("18", Engine.IO_URING) == ("io_uring", [])
    assert engine("18", Engine.LIBAIO) == (None, ["engine"])
    assert engine("17", Engine.IO_URING) == (None, ["engine"])


def test_a_value_stays_within_what_its_version_takes() -> None:
    large = configuration(Engine.IO_URING, request_bytes=1 << 20, queue_depth=4096)
    values = {
        version: {
            line.name: line.value
            for line in settings_of(f"postgresql={version}", large, writes=False).settings
        }
        for version in ("17", "18")
    }
    assert values["17"]["io_combine_limit"] == "256kB"
    assert values["18"]["io_combine_limit"] == "1024kB"
    assert values["18"]["effective_io_concurrency"] == "1000"


@pytest.mark.parametrize(("size", "pages"), [(4096, "8kB"), (14848, "16kB"), (65536, "64kB")])
def test_postgresql_reads_whole_pages(size: int, pages: str) -> None:
    found = settings_of(
        "postgresql=17", configuration(Engine.IO_URING, request_bytes=size), writes=False
    )
    values = {line.name: line.value for line in found.settings}
    assert values["io_combine_limit"] == pages


def test_a_job_of_posixaio_has_one_request_at_the_drive() -> None:
    lines = settings_of("postgresql=15", configuration(Engine.POSIXAIO), writes=False).settings
    assert {line.value for line in lines if line.carries == "queue_depth"} == {"1"}


def test_what_only_writes_need_is_left_out_for_reads() -> None:
    for name in VERSIONS:
        lines = settings_of(name, configuration(Engine.IO_URING), writes=False).settings
        assert "writes" not in {line.carries for line in lines}


@pytest.mark.parametrize("request_", ["oracle", "postgresql=new", "postgresql=", "mysql=8.4-rc"])
def test_a_request_names_an_application_and_a_version(request_: str) -> None:
    if request_ == "postgresql=":
        assert check_request(request_)[2] == load("postgresql").newest
        return
    with pytest.raises(InputError):
        check_request(request_)


def test_the_postgresql_of_this_host_has_what_the_table_says(tmp_path: Path) -> None:
    """Names by `--describe-config`, values by `-C`, which parses them; no server is started."""
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL (Debian's package postgresql) is not installed")
    server = folder / "postgres"
    version = folder.parent.name
    described = subprocess.run(
        [server, "--describe-config"], capture_output=True, text=True, check=True
    ).stdout
    known = {line.split("\t")[0] for line in described.splitlines()}
    numbers = tuple(map(int, version.split(".")))
    for row in load("postgresql").setting:
        expected = any(
            one.holds(numbers, (*one.engines, None)[0])
            for one in load("postgresql").setting
            if one.name == row.name
        )
        assert (row.name in known) == expected, row.name
    (tmp_path / "postgresql.conf").touch()
    for engine in Engine:
        text = settings_of(f"postgresql={version}", configuration(engine), writes=True)
        for line in text.settings:
            done = subprocess.run(
                [server, "-C", line.name, "-D", tmp_path, "-c", f"{line.name}={line.value}"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip() == line.value


def test_the_mariadb_of_this_host_has_what_the_table_says() -> None:
    server = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    if server is None:
        pytest.skip("MariaDB (Debian's package mariadb-server-core) is not installed")

    def variables(*options: str) -> dict[str, str]:
        """What the server would run with."""
        done = subprocess.run(
            [server, "--no-defaults", *options, "--help", "--verbose"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "unknown variable" not in done.stderr, done.stderr
        assert "adjusted" not in done.stderr, done.stderr
        listed = done.stdout.partition("Variables (--variable-name=value)")[2].splitlines()
        pairs = [line.split(maxsplit=1) for line in listed if line[:1].islower()]
        return {pair[0].replace("-", "_"): pair[1] for pair in pairs if len(pair) == 2}

    told = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    version = told.stdout.split(" Ver ")[1].split("-")[0]
    known = variables()
    numbers = tuple(map(int, version.split(".")))
    for row in load("mariadb").setting:
        if row.before is None:
            assert (row.name in known) == row.holds(numbers, None), row.name
    for engine in Engine:
        lines = settings_of(f"mariadb={version}", configuration(engine), writes=True).settings
        stated = variables(*(f"--{line.name.replace('_', '-')}={line.value}" for line in lines))
        for line in lines:
            wanted = {"ON": "TRUE", "OFF": "FALSE"}.get(line.value, line.value)
            assert stated[line.name] == wanted


def test_the_fio_of_this_host_takes_the_job(tmp_path: Path) -> None:
    fio = optional_program("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    for engine in (one for one in Engine if one is not Engine.SPDK):
        for one in {*possible(engine)[:1], *possible(engine)[-1:]}:
            text = settings_of("fio=3.33", one, writes=True).text
            job = tmp_path / "job.fio"
            target = "/dev/ng0n1" if engine is Engine.IO_URING_CMD else str(tmp_path / "data")
            job.write_text(f"{text}[reads]\nrw=randread\nsize=1m\nfilename={target}\n")
            done = subprocess.run(
                [fio, "--parse-only", job], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (text, done.stdout, done.stderr)

"""Job files say what was asked for, in the options of fio."""

import configparser
from typing import Any

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.measure.errors import CampaignError
from iojoule.measure.fio import JobHost, JobTarget, JobTiming, fio_job
from tests.errors import having

TARGET = JobTarget("/dev/nvme0n1", 0, 1 << 30)
TIMING = JobTiming(10.0, 0.5)


def options(
    workload: dict[str, Any],
    configuration: dict[str, Any] | None = None,
    host: JobHost | None = None,
) -> dict[str, dict[str, str]]:
    text = fio_job(
        Workload.model_validate(workload),
        Configuration.model_validate({"request_bytes": 4096, **(configuration or {})}),
        TARGET,
        TIMING,
        host or JobHost(),
    )
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def test_a_missing_target_is_never_created_and_the_cache_never_asked() -> None:
    found = options({"operation": "read"})["global"]
    assert found["allow_file_create"] == "0"
    assert found["direct"] == "1"
    assert (found["runtime"], found["ramp_time"]) == ("10000ms", "500ms")


def test_polling_is_written_with_a_value_so_that_fio_records_it() -> None:
    off = options({"operation": "read"}, {"engine": "io_uring", "completion": "interrupt"})
    on = options({"operation": "read"}, {"engine": "io_uring", "completion": "polled"})
    assert (off["global"]["hipri"], on["global"]["hipri"]) == ("0", "1")
    assert "hipri" not in options({"operation": "read"}, {"engine": "libaio"})["global"]


def test_submission_polling_is_io_urings() -> None:
    found = options({"operation": "read"}, {"engine": "io_uring", "submission_polling": True})
    assert found["global"]["sqthread_poll"] == "1"


def test_an_open_loop_counts_latency_from_the_intended_start() -> None:
    found = options(
        {"operation": "read", "demand_operations_per_second": 1000, "arrival_process": "poisson"},
        {"jobs": 4, "engine": "libaio"},
    )["global"]
    assert found["io_submit_mode"] == "offload"
    assert found["rate_iops"] == "250"
    assert found["rate_process"] == "poisson"


def test_engines_of_io_uring_are_not_offloaded_because_fio_refuses() -> None:
    for engine in ("io_uring", "io_uring_cmd", None):
        found = options(
            {"operation": "read", "demand_operations_per_second": 1000},
            {} if engine is None else {"engine": engine},
        )["global"]
        assert "io_submit_mode" not in found
        assert found["rate_iops"] == "1000"


def test_a_mixed_demand_is_shared_out_by_the_mix() -> None:
    found = options(
        {"operation": "mixed", "read_fraction": 0.75, "demand_bytes_per_second": 4096e3}
    )
    assert found["global"]["rate_iops"] == "750,250"
    assert found["mixed"] == {"rw": "randrw", "rwmixread": "75"}


def test_separated_directions_share_the_depth() -> None:
    found = options(
        {"operation": "mixed", "read_fraction": 0.75, "mix_dispatch": "separated"},
        {"queue_depth": 8, "engine": "libaio"},
    )
    assert found["reads"] == {"rw": "randread", "iodepth": "6"}
    assert found["writes"] == {"rw": "randwrite", "iodepth": "2"}


def test_separated_directions_need_two_requests() -> None:
    with pytest.raises(CampaignError, check=having(field="queue_depth")):
        options({"operation": "mixed", "read_fraction": 0.5, "mix_dispatch": "separated"})


def test_sequential_jobs_do_not_read_the_same_bytes() -> None:
    found = options({"operation": "read", "pattern": "sequential"}, {"jobs": 4})["global"]
    assert found["size"] == found["offset_increment"] == str((1 << 30) // 4)


def test_flushes_and_forced_unit_access_reach_fio() -> None:
    found = options({"operation": "write", "flush_every_writes": 32, "force_unit_access": True})[
        "global"
    ]
    assert (found["fdatasync"], found["sync"]) == ("32", "dsync")


def test_jobs_are_pinned_where_the_plan_says() -> None:
    found = options({"operation": "read"}, {"job_numa_node": 1}, JobHost(cpus="0-3,8"))["global"]
    assert (found["cpus_allowed"], found["numa_cpu_nodes"]) == ("0-3,8", "1")


def test_io_uring_cmd_speaks_nvme() -> None:
    found = options({"operation": "read"}, {"engine": "io_uring_cmd"})["global"]
    assert (found["ioengine"], found["cmd_type"]) == ("io_uring_cmd", "nvme")
    assert "direct" not in found, "fio would open /dev/ng0n1 with O_DIRECT, which Linux refuses"


def test_spdk_is_the_users_own_plugin() -> None:
    with pytest.raises(CampaignError, check=having(field="engine")):
        options({"operation": "read"}, {"engine": "spdk"})
    found = options({"operation": "read"}, {"engine": "spdk"}, JobHost(spdk_plugin="/opt/p.so"))
    assert found["global"]["ioengine"] == "external:/opt/p.so"


def test_a_request_that_does_not_fit_is_refused() -> None:
    with pytest.raises(CampaignError, check=having(field="request_bytes")):
        options({"operation": "read", "working_set_bytes": 4096}, {"request_bytes": 8192})


def test_a_distribution_of_sizes_is_written_in_fios_words() -> None:
    found = options({"operation": "read", "request_bytes_mix": "4096/60:65536/40"})["global"]
    assert found["bssplit"] == "4096/60:65536/40"
    assert "bs" not in found

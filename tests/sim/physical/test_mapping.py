"""The cached mapping table: what does not fit is read from flash, what changed is written back."""

import pytest

from tests.sim.physical.drives import READS, SECOND, WRITES, drive, run

ENTRIES_IN_PAGE = 8192 // 8


def test_a_miss_costs_a_read_of_the_table() -> None:
    """A cache of one entry: every read takes two, one after the other."""
    ideal = run(drive(), READS).flows[0]
    cached = run(drive(mapping_ideal=False, cmt_bytes=8), READS)
    assert cached.device.cmt_hits < 0.01 * cached.device.cmt_queries
    assert cached.device.map_reads == pytest.approx(cached.flows[0].serviced, rel=0.01)
    table_ns = 290 + 75_000 + 8640 / 0.8
    assert cached.flows[0].drt_ns == pytest.approx(ideal.drt_ns + table_ns, rel=0.002)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_hits_are_the_share_of_the_table_that_is_cached(share: float) -> None:
    """Uniform reads: whatever the replacement, hits come as often as entries are there."""
    units = 4 * 64 * 64 * 3 // 4
    device = drive(
        mapping_ideal=False, cmt_bytes=int(8 * units * share), physical={"warmup_ns": SECOND}
    )
    result = run(device, {**READS, "queue_depth": 32, "stop_ns": 2 * SECOND})
    ratio = result.device.cmt_hits / result.device.cmt_queries
    assert ratio == pytest.approx(share, abs=0.03)


def test_longer_lines_help_sequential_reads() -> None:
    ratios = []
    for entries in (1, 16):
        controller = {"mapping_entries_per_line": entries}
        device = drive(mapping_ideal=False, cmt_bytes=4096, physical={"controller": controller})
        result = run(device, {**READS, "address_distribution": "streaming"})
        ratios.append(result.device.cmt_hits / result.device.cmt_queries)
    assert ratios[0] < 0.01
    assert ratios[1] == pytest.approx(15 / 16, abs=0.01)


def test_changed_entries_are_written_back() -> None:
    """Each write-back is a read and a program of a table page; they compete with the data."""
    flow = {**WRITES, "queue_depth": 32, "stop_ns": SECOND, "caching": "turned_off"}
    ideal = run(drive(), flow)
    device = drive(mapping_ideal=False, cmt_bytes=2048, physical={"check_consistency": True})
    cached = run(device, flow)
    counts = cached.device
    assert counts.map_writes > 0
    assert counts.pages_programmed_by_origin.mapping == counts.map_writes
    assert counts.map_writes < counts.pages_programmed_by_origin.user
    assert cached.flows[0].iops < 0.9 * ideal.flows[0].iops


def test_partitions_keep_a_flow_from_evicting_anothers_entries() -> None:
    """61 addresses beside very many: half of 128 entries is enough for them, if it is theirs."""
    narrow = {**READS, "working_set_percent": 1, "queue_depth": 4, "stop_ns": SECOND}
    wide = {**READS, "queue_depth": 8, "seed": 77, "stop_ns": SECOND}
    latency = {}
    for sharing in ("shared", "equal_partitioning"):
        device = drive(mapping_ideal=False, cmt_bytes=1024, cmt_sharing=sharing)
        latency[sharing] = run(device, narrow, wide).flows[0].drt_ns
    assert latency["equal_partitioning"] < 0.9 * latency["shared"]

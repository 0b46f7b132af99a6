"""A drive in closed form that obeys every law, and can be told to break one.

Eight servers in front of an M/M/1 delay, a host whose power is linear in the rate of requests, a
cache that a horizon of writes may fill. It answers as a Subject does, without any model of ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.validation.laws.drawing import DEPTHS, JOBS, NVME_ONLY
from iojoule.recommender.validation.laws.subject import Figure, Subject
from tests.recommender.conftest import profile_data

DRIVES = ("intel-660p-2tb", "kioxia-cd8", "micron-7450", "samsung-990-pro-4tb", "toshiba-xg4")
YEAR = 31_557_600.0
CACHE, SHARE = 1e11, 1.1
IDLE_DEVICE, IDLE_CPU = 2.0, 40.0
DEFAULT = {
    "request_bytes": 4096, "queue_depth": 1, "jobs": 1, "engine": "io_uring",
    "completion": "interrupt", "submission_polling": False, "scheduler": "none", "power_state": 0,
}  # fmt: skip
LATER = {"mean": 1.0, "p50": 0.7, "p99": 4.0, "p999": 6.0}
EVIDENCE = "interpolated"

Answer = dict[str, Any]


def estimate(value: float, low: float, high: float, evidence: str = EVIDENCE) -> Answer:
    return {"value": value, "low": low, "high": high, "evidence": evidence}


def around(value: float, share: float = 1.05) -> Answer:
    return estimate(value, value / share, value * share)


def within(stated: Answer, limit: float | None) -> Answer:
    return stated | {"high": min(stated["high"], limit or math.inf)}


def toy_profile(device: str) -> DeviceProfile:
    data = profile_data()
    measured = [one | {"evidence": "measured"} for one in data["surfaces"]]
    return DeviceProfile.model_validate(data | {"device": device, "surfaces": measured})


def _worth_its_cpu(row: Answer, now: Answer) -> bool:
    """Whether a row costs the CPU no more than it saves the drive, and does not poll unknown."""
    used, before = row["configuration"], now["configuration"]
    if row["cpu_power_watts"] is None:
        return bool(used["completion"] == before["completion"])
    saved = now["device_power_watts"]["value"] - row["device_power_watts"]["value"]
    more = row["cpu_power_watts"]["value"] - now["cpu_power_watts"]["value"]
    return bool(more <= max(saved, 0.0))


class Toy(Subject):
    """Obeys every law but the one named."""

    def __init__(self, broken: int | None = None, device: str = "samsung-980-pro-1tb") -> None:
        super().__init__(toy_profile(device), toy_profile, DRIVES)
        self.broken = broken
        self.slow = 1.0 + (sum(map(ord, device)) % 97) / 50.0

    def other(self, device: str) -> Subject:
        if ("toy", device) not in self.memo:
            other = Toy(self.broken, device)
            other.slow = self.slow if self.broken == 15 else other.slow
            self.memo["toy", device] = other
        return self.memo["toy", device]

    def with_profile(self, **changed: Any) -> Subject:
        found = Toy(self.broken, self.device)
        found.profile = self.profile.model_copy(update=changed)
        return found

    def documents(self) -> Answer:
        wrong = {"evidence": "published", "source": "assumption: as it were"}
        return {"profile": {"power": wrong if self.broken == 19 else {}}}

    # --- physics

    def service_seconds(self, used: Answer, fraction: float, *, steady: bool) -> float:
        """Of a request; linear in the share of reads."""
        alone = 50e-6 * (1.5 - 0.5 * fraction) + used["request_bytes"] / 1e9
        if self.broken == 13 and math.log2(used["request_bytes"]) % 1:
            alone *= 3.0
        factor = (1.0 + 0.2 * used["power_state"]) * (1.0 + 3.0 * (1.0 - fraction) * steady)
        factor *= self.held_back(used)
        mixed = self.broken == 12 and 0.0 < fraction < 1.0
        return alone * factor * self.slow * (1.3 if mixed else 1.0)

    def held_back(self, used: Answer) -> float:
        """By what a power limit lengthens a request."""
        limit = used.get("power_limit_watts") or math.inf
        return max(1.0, self.busy_watts(used) / (limit - IDLE_DEVICE))

    def busy_watts(self, used: Answer) -> float:
        """Above idle, without a power limit."""
        return 3.0 * (1.0 - 0.2 * used["power_state"])

    def row(
        self, used: Answer, fraction: float, demand: float | None, *, steady: bool, cpu: bool = True
    ) -> Answer:
        """One configuration at a demand in bytes a second, or at full speed."""
        size, flight = used["request_bytes"], used["queue_depth"] * used["jobs"]
        seconds = self.service_seconds(used, fraction, steady=steady)
        most = min(flight, 8) / seconds * size
        busy = 1.0 if demand is None else min(demand / most, 1.0)
        rate = busy * most / size
        if demand is None:
            late, end = flight / most * size, SHARE
        elif self.broken == 6:
            late, end = seconds, SHARE
        else:
            late = seconds / (1.0 - busy) if busy < 1.0 else math.inf
            end = SHARE if demand < most / SHARE else math.inf
        device = IDLE_DEVICE + busy * self.busy_watts(used) / self.held_back(used)
        spins = 3.0 * busy * (used["completion"] == "polled")
        spins += 2.0 * used["submission_polling"] + 5.0 * (used["engine"] == "spdk")
        host = IDLE_CPU + 50e-6 * rate + spins
        if self.broken == 3 and used["completion"] == "polled":
            device -= 0.2 * busy
        if self.broken == 5:
            host += 0.5 * used["jobs"]
        wall = 30.0 + (0.5 if self.broken == 2 else 1.1) * (device + host)
        found: Answer = {
            "configuration": dict(used),
            "throughput_bytes_per_second": around(rate * size, SHARE),
            "capacity_bytes_per_second": around(most, SHARE),
            "iops": around(rate, SHARE),
            "device_power_watts": within(around(device), used.get("power_limit_watts")),
            "cpu_power_watts": around(host) if cpu else None,
            "device_cpu_power_watts": around(device + host) if cpu else None,
            "system_power_watts": around(wall) if cpu else None,
            "concurrency": flight,
        }  # fmt: skip
        for name, factor in LATER.items():
            value = factor * late * 1e9
            value = value * 1e9 if self.broken == 14 else value
            found[f"latency_{name}_ns"] = estimate(value, value / SHARE, value * end)
        if self.broken == 8:
            found.pop("concurrency")
        return found

    # --- questions

    def recommend(self, workload: Mapping[str, Any]) -> Answer:
        asked = dict(workload)
        work, sla, scope = asked["workload"], asked.get("sla") or {}, asked.get("scope")
        scope = getattr(scope, "value", scope) or "device_cpu"
        today = asked.get("current") if "name" not in asked else None  # presets have no today
        size = work.get("useful_request_bytes") or 4096
        demand = work.get("demand_bytes_per_second")
        if work.get("demand_operations_per_second"):
            demand = work["demand_operations_per_second"] * size
        current = {**DEFAULT, "request_bytes": size, **(today or {})}
        if self.drive is not None and self.drive.interface == "sata":
            self._refuse_sata(current)
        fraction = {"read": 1.0, "write": 0.0}.get(
            getattr(work["operation"], "value", work["operation"]), work.get("read_fraction")
        )
        steady = (asked.get("state") or {}).get("device_state") == "steady"
        filled = (demand or 1e12) * (1.0 - fraction) * asked.get("horizon_seconds", YEAR) > CACHE
        steady = steady or (filled and self.broken != 9)
        cpu = self.profile.host_power is not None

        def judged(used: Answer) -> Answer:
            found = self.row(used, fraction, demand, steady=steady, cpu=cpu)
            found["meets_sla"] = self._meets(found, work, sla, demand)
            return found

        rows = [judged(used) for used in self._candidates(asked, current, today)]
        power = f"{scope}_power_watts"
        if not cpu:
            power = "device_power_watts"
        now = judged(current)

        def cost(found: Answer) -> float:
            one = found[power]["value"]
            return (
                one if demand is not None else one / found["throughput_bytes_per_second"]["value"]
            )

        if scope == "device" and self.broken != 3:
            rows = [row for row in rows if _worth_its_cpu(row, now)]
        good = sorted((row for row in rows if row["meets_sla"]), key=cost)
        if self.broken == 7 and good and demand is not None and sla:
            good = good[-1:]
        best = good[0] if good else None
        if today and now["meets_sla"] and (best is None or cost(best) > 0.98 * cost(now)):
            best = now if self.broken != 17 else best
        return {
            "recommended": best,
            "current": now,
            "saving": self._saving(best, now, power, demand) if today and best else None,
            "pareto": good[:20],
            "counts": {"feasible": len(good)},
            "mode": "as_fast_as_possible" if demand is None else "equal_work",
            "least_saving_percent": 2.0,
            "not_taken": None,
        }

    def today(self, workload: Mapping[str, Any]) -> Answer:
        row: Answer = self.recommend(workload)["current"]
        return row

    def _candidates(self, asked: Answer, current: Answer, today: Answer | None) -> list[Answer]:
        free = asked.get("free") or {"queue_depth": "all", "jobs": "all"}
        everything = {
            "queue_depth": DEPTHS, "jobs": JOBS, "power_state": (0, 1, 2), "power_limit_watts": (0,)
        }  # fmt: skip
        if self.broken == 3:
            everything["completion"] = ("interrupt", "polled")
        axes = {
            name: everything[name] if free[name] == "all" else free[name]
            for name in free
            if name in everything
        }
        limit = asked.get("concurrency_max")
        if limit == "unbounded" or (limit is None and not today) or self.broken == 8:
            limit = math.inf
        elif limit is None:
            limit = current["queue_depth"] * current["jobs"]
        found = [current | dict(zip(axes, each, strict=True)) for each in product(*axes.values())]
        return [
            one
            for one in found
            if one["queue_depth"] * one["jobs"] <= limit
            and (one["engine"] != "psync" or one["queue_depth"] == 1)
        ]

    def _meets(self, row: Answer, work: Answer, sla: Answer, demand: float | None) -> bool:
        writes = getattr(work["operation"], "value", work["operation"]) != "read"
        flushes = writes and (work.get("flush_every_writes") or work.get("force_unit_access"))
        if flushes and self.profile.flush is None and self.broken != 11:
            return False
        able = row["capacity_bytes_per_second"]["low"]
        kept = [demand is None or demand <= able]
        for name, bound in sla.items():
            if name == "throughput_bytes_per_second_min":
                kept.append(able >= bound)
            elif name.removesuffix("_max") in row:
                kept.append(row[name.removesuffix("_max")]["high"] <= bound)
        return all(kept)

    def _saving(self, row: Answer, now: Answer, power: str, demand: float | None) -> Answer:
        old, new = now[power]["value"], row[power]["value"]
        speeds = [one["throughput_bytes_per_second"]["value"] for one in (now, row)]
        share = min(speeds[0] / speeds[1], 1.0) if demand is None else 1.0
        idle = {"device_power_watts": IDLE_DEVICE, "device_cpu_power_watts": IDLE_DEVICE + IDLE_CPU}
        rest = idle.get(power, 30.0 + 1.1 * (IDLE_DEVICE + IDLE_CPU))
        year = old - share * new - (1.0 - share) * rest
        if self.broken == 4:
            year = old - share * new
        percent = 100.0 * (old - new) / old
        return {
            "watts": estimate(old - new, old - new, old - new),
            "kwh_per_year": estimate(8.766 * year, 8.766 * year, 8.766 * year),
            "percent": estimate(percent, percent, percent),
            "percent_of": "today's power of the scope",
            "probability": float(percent > 0.0),
            "verdict": "expected",
        }

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Figure]]:
        found = []
        for asked in rows:
            used = {name: asked.get(name, default) for name, default in DEFAULT.items()}
            if self.drive is not None and self.drive.interface == "sata":
                self._refuse_sata(used)
            fraction = {"read": 1.0, "write": 0.0}.get(
                str(asked.get("operation")), asked.get("read_fraction", 1.0)
            )
            steady = asked.get("device_state") == "steady"
            row = self.row(used, fraction, None, steady=steady)
            if self.broken == 18:
                row["device_power_watts"] = around(9.0)
            whole = math.log2(used["request_bytes"]) % 1 == 0 and math.log2(used["queue_depth"])
            known = "measured" if whole is not False and whole % 1 == 0 else EVIDENCE
            found.append(
                {
                    name: Figure(one["value"], one["low"], one["high"], known)
                    for name, one in row.items()
                    if isinstance(one, dict) and "value" in one
                }
            )
        return found

    def _refuse_sata(self, used: Answer) -> None:
        speaks_nvme = used["engine"] in NVME_ONLY
        if self.broken != 16 and (speaks_nvme or used["completion"] == "polled"):
            raise InputError("completion: a SATA drive is not polled", field="completion")

    def predict_under(self, conditions: Mapping[str, Any], row: Mapping[str, Any]) -> Figure:
        degrees = conditions.get("temperature_celsius_mean", 30.0)
        drive = load_catalogue().get(self.device)
        own = drive.fact("pcie_generation")
        most = 5 if own is None else int(own.value)
        if self.broken != 16 and not (
            -40 <= degrees <= 85 and conditions.get("pcie_generation", 1) <= most
        ):
            raise InputError("not on this drive", field="conditions")
        return self.predict([row])[0]["iops"]

    def what_if(
        self, workload: Mapping[str, Any], changes: Mapping[str, Any], drives: int = 1
    ) -> Answer:
        other: Subject = self.other(changes["drive"]) if "drive" in changes else self
        count = changes.get("drives", 1)
        asked = dict(workload["workload"])
        asked["demand_bytes_per_second"] *= changes.get("growth", 1.0) / count
        sides = [
            self._side(self.recommend(workload), 1),
            self._side(other.recommend({**workload, "workload": asked}), count),
        ]
        known = all(side["totals"]["power_watts"] for side in sides)
        return {
            "base": sides[0], "changed": sides[1],
            "differences": [{"quantity": "power_watts"}] if known else [],
        }  # fmt: skip

    def _side(self, answer: Answer, drives: int) -> Answer:
        row = answer["recommended"] or answer["current"]
        device = row["device_power_watts"]["value"]
        if row["cpu_power_watts"] is None:
            return {
                "answer": answer,
                "totals": {"device_power_watts": around(drives * device), "power_watts": None},
            }
        host = row["cpu_power_watts"]["value"]
        if self.broken == 1:
            host *= drives * self.slow
        else:
            host = IDLE_CPU + drives * (host - IDLE_CPU)
        totals = {"device_power_watts": around(drives * device),
                  "power_watts": around(drives * device + host)}  # fmt: skip
        return {"answer": answer, "totals": totals}

    def fleet(self, fleet: Mapping[str, Any]) -> Answer:
        one = fleet["classes"][0]
        asked = one["workload"]
        work = {**asked["workload"], "demand_bytes_per_second": one["demand_bytes_per_second"]}
        row = self.recommend({**asked, "workload": work})["current"]
        serving = {"load_bytes_per_second": 1.0, "watts": row["device_power_watts"]["value"]}
        return {"groups": [{"assignments": [serving]}]}

    def timeline(
        self,
        fields: Mapping[str, Any],
        phases: Sequence[tuple[str, float, float | None]],
        step_seconds: float,
    ) -> dict[str, np.ndarray[Any, Any]]:
        used = {name: fields.get(name, default) for name, default in DEFAULT.items()}
        cache = fields.get("host_bytes_written_since_purge", 0.0)
        found: dict[str, list[float]] = {
            name: [] for name in ("seconds", "bytes_per_second", "watts", "cache_bytes")
        }
        for name, seconds, rate in phases:
            for _ in range(math.ceil(seconds / step_seconds)):
                row = self.row(used, 0.0, None, steady=cache > CACHE)
                able = row["throughput_bytes_per_second"]["value"]
                speed = 0.0 if name == "idle" else min(able, rate or able)
                cache += speed * step_seconds
                found["seconds"].append(len(found["seconds"]) * step_seconds)
                found["bytes_per_second"].append(speed)
                found["watts"].append(IDLE_DEVICE + (row["device_power_watts"]["value"]
                                                     - IDLE_DEVICE) * speed / able)  # fmt: skip
                found["cache_bytes"].append(cache)
        if self.broken == 10:
            found["watts"] = [watts + 1e-3 * cache / CACHE for watts in found["watts"]]
        return {name: np.array(cells) for name, cells in found.items()}

from __future__ import annotations

from cotenant.report.efficiency import efficiency_lines
from cotenant.results.record import Record
from results.made import a_record
from results.test_scaled import point


def lines(*records: Record) -> list[str]:
    return [line.plain for line in efficiency_lines(records)]


def test_a_row_per_number_of_devices() -> None:
    assert lines(point(1, 100), point(2, 190), point(4, 300)) == [
        "scaling  efficiency = rate of k devices / (k x rate of one)",
        "devices   rate  efficiency  95 % interval  n",
        "      1  100.0       1.000              -  1",
        "      2  190.0       0.950    n too small  1",
        "      4  300.0       0.750    n too small  1",
    ]


def test_several_launches_have_an_interval() -> None:
    records = [point(k, k * rate) for k in (1, 2) for rate in (100, 101, 102)]
    *_, row = lines(*records)
    assert row.split()[:3] == ["2", "202.0", "1.000"]
    low, high = map(float, row.split()[3].split("-"))
    assert low < 1 < high


def test_without_one_device_rates_stand_alone() -> None:
    *_, row = lines(point(2, 190), point(4, 300))
    assert row.split() == ["4", "300.0", "-", "-", "1"]


def test_a_single_number_of_devices_is_no_scaling() -> None:
    assert lines(point(2, 190), a_record()) == []

"""Selections, schedules, counts, simulations, sweeps and files agree with each other and with the program."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import Program

import topocoll as tc


@pytest.fixture(scope="module")
def torus() -> tc.Machine:
    return tc.machine("torus:8x8", ports=4)


@pytest.fixture(scope="module")
def best(torus: tc.Machine) -> tc.Schedule:
    return tc.select(torus, block="4KiB").best.schedule()


def test_the_short_answer_is_that_of_the_program() -> None:
    # The console session of the README.
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    answer = readme.split("$ topocoll select paragon-16x16\n")[1].splitlines()[:2]
    assert repr(tc.select("paragon-16x16")).splitlines() == answer


@pytest.mark.parametrize("name", ["giganet-6x4", "torus:8x8", "full:64", "cluster:4,4,4", "trainium2-4x4-faulty"])
def test_choices_are_named_as_the_program_names_them(name: str, program: Program) -> None:
    said = program("select", name).stdout.splitlines()
    found = tc.select(name)
    assert said[0].startswith(f"Use {found.best.named}: ")
    table = said[said.index("") + 1 :]
    # The winners by block size, or the options, follow.
    end = next(place for place, line in enumerate(table) if line.startswith((" from ", "--all")))
    rows = [re.split(r" {2,}", line.strip())[:2] for line in table[:end] if re.match(r" [a-z]", line)][1:]
    if "setting" not in " ".join(table[:2]):
        rows = [[algorithm, "-"] for algorithm, _ in rows]
    named = [choice.named for choice in found]
    for algorithm, setting in rows:
        assert (algorithm if setting == "-" else f"{algorithm} ({setting})") in named
    assert len(rows) > 1


def test_a_selection_is_ranked_and_shown(torus: tc.Machine) -> None:
    found = tc.select(torus, block="4KiB")
    assert found.block_bytes == 4096 and len(found) == len(list(found)) == len(found.choices)
    times = [choice.time for choice in found]
    ranked = [choice.ranked for choice in found]
    assert ranked == sorted(ranked) and found.best == found[0]
    assert all(choice.ranked == max(choice.time, choice.free_running or 0.0) for choice in found)
    assert found.free_running_model == "wormhole" and found.best.free_running is not None
    assert found.all_at_once is not None and "free-running (wormhole)" in repr(found)
    in_step = tc.select(torus, block="4KiB", barrier=True)
    assert [choice.time for choice in in_step] == sorted(choice.time for choice in in_step)
    assert all(choice.free_running is None for choice in in_step) and in_step.all_at_once is None
    assert all(choice.time >= found.bound["time"] * 0.999999 for choice in found)
    terms = ("startup", "transmission", "propagation", "rearrangement", "barrier")
    assert sum(getattr(found.best, term) for term in terms) == pytest.approx(found.best.time)
    assert {name for name, _ in found.rejected} & {"clustered-factor"}
    table = found.to_pandas()
    assert list(table["time"]) == times and table["setting"][0] == choice_setting(found)
    shown = found._repr_html_()
    assert "<table>" in shown and found.best.algorithm in shown


def choice_setting(found: tc.Selection) -> str:
    return " ".join(f"{name}={value}" for name, value in found.best.parameters.items())


def test_names_in_a_table_are_escaped() -> None:
    class Evil:
        name = "<script>"

        def messages(self, machine: tc.Machine) -> list[tuple[int, int, int]]:
            return [(0, 0, 1), (0, 1, 0)]

    shown = tc.select("full:2", algorithms=[Evil()])._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_a_choice_gives_its_schedule(best: tc.Schedule, torus: tc.Machine) -> None:
    choice = tc.select(torus, block="4KiB").best
    assert (best.algorithm, best.parameters) == (choice.algorithm, choice.parameters)
    assert best.counts["steps"] == choice.steps and best.counts["time"] == pytest.approx(choice.time)
    again = tc.schedule(torus, best.algorithm, block=4096, **best.parameters)  # type: ignore[arg-type]
    assert np.array_equal(again.messages, best.messages)


def test_messages_are_a_structured_array(best: tc.Schedule) -> None:
    messages = best.messages
    assert messages.dtype.names == ("step", "from", "to", "port", "bytes", "packed", "hops", "slots")
    assert messages.dtype.itemsize == 40 and messages["bytes"].dtype == np.uint64
    assert len(messages) == best.counts["messages"]
    order = messages[["step", "from", "port"]]
    assert np.array_equal(order, np.sort(order))
    largest = [messages["bytes"][messages["step"] == step].max() for step in np.unique(messages["step"])]
    assert sum(int(most) for most in largest) == best.counts["bytes"]
    assert messages["port"].max() < 4 and (messages["from"] != messages["to"]).all()


def test_arrays_are_views_that_cannot_be_written(best: tc.Schedule) -> None:
    assert best.messages is best.messages and not best.messages.flags.writeable
    assert best.messages.base is not None and not best.messages.flags.owndata
    step = best.blocks(0)
    assert step.base is best.blocks() or step.base is best.blocks().base
    with pytest.raises(ValueError, match="read-only"):
        best.messages["step"] = 1


@pytest.mark.parametrize(
    ("name", "ports", "op"),
    [
        ("torus:4x4", 4, "alltoall"),
        ("full:12", 3, "alltoall"),
        ("cluster:4,4,4", 4, "alltoall"),
        ("mesh:3x5", 1, "alltoall"),
        ("torus:4x4", 2, "allgather"),
        ("full:10", 3, "allgather"),
    ],
)
def test_blocks_of_every_choice_make_the_same_schedule_again(name: str, ports: int, op: str) -> None:
    machine = tc.machine(name, ports)
    for choice in tc.select(machine, block=60, op=op):
        given = choice.schedule()
        blocks = given.blocks()
        moved = np.bincount(blocks["message"], (blocks["end"] - blocks["first"]).astype(float))
        assert np.array_equal(moved, given.messages["bytes"].astype(float))
        again = tc.schedule(machine, blocks, block=60, op=op)
        assert again.verify().delivered, choice.named
        assert np.array_equal(again.messages["bytes"], given.messages["bytes"])
        assert sum(len(given.blocks(step)) for step in range(given.steps)) == len(blocks)


def test_a_proof_is_true_if_it_holds(best: tc.Schedule) -> None:
    proof = best.verify()
    assert proof and proof.delivered and proof.violation is None and proof.method == "replay"
    assert best.verify("classes").method == "classes" and proof.counts == best.counts
    short = tc.schedule("full:4", [(0, 0, 1)])
    failed = short.verify()
    assert not failed and "delivery fails" in str(failed.violation)


@pytest.mark.parametrize("model", ["steps", "wormhole", "flit", "fluid"])
def test_every_model_simulates(model: str) -> None:
    schedule = tc.schedule("torus:4x4", "direct", block=64)
    found = schedule.simulate(model)
    assert found.model == model and found.time > 0 and found.messages == len(schedule.messages)
    assert found.steps.shape[1] == 2 and (found.steps[:, 1] >= found.steps[:, 0]).all()
    if model == "steps":
        assert found.barrier and found.time == pytest.approx(schedule.counts["time"])
        assert found.steps[-1, 1] == pytest.approx(found.time)
        return
    assert found.latency["max"] >= found.latency["p50"] > 0 and not found.barrier
    latencies = found.latencies
    assert len(latencies) == found.messages and latencies.dtype == np.float64
    assert latencies.max() <= found.latency["max"] * 1.000001
    every = schedule.simulate(model, records=True)
    assert every.time == found.time and len(every.intervals) == schedule.messages["hops"].sum()
    assert every.link_bytes.sum() == (schedule.messages["hops"] * schedule.messages["bytes"]).sum()


def test_barriers_and_settings_count() -> None:
    schedule = tc.schedule("torus:4x4", "direct", block=4096)
    assert schedule.simulate(barrier=True).time != schedule.simulate().time
    assert schedule.simulate("flit", vcs=2).time > schedule.simulate("flit", vcs=8).time
    assert schedule.simulate("fluid", message_overhead="1ms").time > 15e-3


def test_a_sweep_has_the_times_of_selections(torus: tc.Machine) -> None:
    found = tc.sweep(torus, blocks="64:4KiB")
    assert found.blocks.tolist() == [64, 128, 256, 512, 1024, 2048, 4096]
    for place, block in ((0, 64), (6, 4096)):
        best = tc.select(torus, block=block).best
        assert min(times[place] for times in found.times.values()) == pytest.approx(best.time)
    assert (found.bounds <= np.min(list(found.times.values()), axis=0) * 1.000001).all()
    assert found.crossovers[0][0] == 64
    assert len(found.to_pandas()) == 7 * len(found.lines)
    assert list(tc.sweep(torus, blocks=[1, "1KiB"], named=["direct"]).lines) == ["direct"]
    two = tc.sweep("full:16", blocks=[64], named={"bruck": {"radix": 2}})
    assert two.lines["bruck"][0].parameters["radix"] == 2


def test_a_sweep_is_drawn(torus: tc.Machine) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = tc.sweep(torus, blocks="64:4KiB")
    ax = found.plot()
    assert ax.get_xlabel() == "block [B]" and len(ax.get_lines()) == len(found.lines) + 1
    own = pyplot.figure().subplots()
    assert found.plot(own) is own
    pyplot.close("all")


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".goal", ".dot"])
def test_files_are_written_and_read(tmp_path: Path, ending: str) -> None:
    schedule = tc.schedule("torus:4x4", "suh-shin", block=64)
    path = tmp_path / f"s{ending}"
    schedule.save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    if ending == ".dot":
        assert path.read_text().startswith("digraph")
        return
    again = tc.schedule("torus:4x4", path)
    assert np.array_equal(again.messages["bytes"], schedule.messages["bytes"])
    assert ending == ".csv" or again.verify()


def test_a_folder_of_simgrid_is_written(tmp_path: Path) -> None:
    schedule = tc.schedule("torus:4x4", "direct", block=64)
    schedule.save(tmp_path / "grid", "simgrid")
    assert (tmp_path / "grid" / "platform.xml").exists()
    with pytest.raises(tc.Error, match="is not empty"):
        schedule.save(tmp_path / "grid", "simgrid")


def test_json_lines_are_those_of_the_program(tmp_path: Path) -> None:
    tc.schedule("torus:4x4", "direct", block=64).save(tmp_path / "s.jsonl")
    header, first = (tmp_path / "s.jsonl").read_text().splitlines()[:2]
    assert json.loads(header)["topology"]["dims"] == [4, 4] and json.loads(first)["step"] == 0


def test_an_all_gather_is_ranked_and_proved() -> None:
    found = tc.select("full:12", op="allgather", block=100)
    schedule = found.best.schedule()
    assert schedule.verify() and schedule.operation == "allgather"
    again = tc.schedule("full:12", schedule.blocks(), op="allgather", block=100)
    assert again.verify().delivered


def test_a_report_is_the_page_of_the_program(tmp_path: Path) -> None:
    schedule = tc.schedule("torus:4x4", "suh-shin", block=64)
    report = schedule.report()
    assert report.html.startswith("<!") and "suh-shin" in report.html and "</script>" in report.html
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == report.html
    inline = report._repr_html_()
    assert inline.startswith("<iframe srcdoc=") and inline.count("<") == 2
    own = tc.schedule("torus:4x4", [(s, r, (r + s + 1) % 16) for s in range(15) for r in range(16)], block=64)
    assert "messages" in own.report().html


def test_lists_are_those_of_the_program(program: Program) -> None:
    said = json.loads(program("algorithms", "--json").stdout)["algorithms"]
    for entry, own in zip(said, tc.algorithms(), strict=True):
        values = {parameter["name"]: parameter["values"] for parameter in entry["parameters"]}
        assert own == {key: entry[key] for key in ("name", "operation", "summary", "source")} | {"parameters": values}
    said = json.loads(program("machines", "--json").stdout)["machines"]
    for entry, own in zip(said, tc.machines(), strict=True):
        assert all(own[key] == entry[key] for key in ("name", "topology", "ranks", "ports", "title"))
        assert own["sources"] == {source["value"]: source["source"] for source in entry["sources"]}
        assert own["node_ports"] == entry.get("node_ports", own["ports"])


def test_a_saved_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        tc.Report("").save(tmp_path / "missing" / "page.html")
    with pytest.raises(tc.Error, match="not a regular file"):
        tc.Report("").save("/dev/full")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 us"), (31.35e-3, "31.35 ms"), (1.5, "1.500 s"), (12345.6, "12346 s"), (2.5e-8, "0.02500 us")],
)
def test_durations_have_four_digits(value: float, text: str) -> None:
    from topocoll import _text

    assert _text.seconds(value) == text

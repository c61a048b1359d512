#!/usr/bin/python3
"""The page of `topocoll report` in headless Chromium: used as a person would, and looked at.

    tests/browser/page.py target/debug/topocoll [CLASS..]

UPDATE=1 keeps new screenshots. GALLERY=FOLDER writes pictures of whole pages there. With TOPOCOLL_SWEEP=1 more blocks
are followed, on more machines, and drawings have more angles and sizes.

Needs Debian's chromium, chromium-driver, python3-selenium and python3-pil, which tests/run installs.
"""
import json
import os
import random
import re
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from chromium import DESKTOP, HERE, LONG, PHONE, PROGRAM, Chromium
from drawing import Drawing
from over_time import OverTime
from saying import Saying
from taking import Taking

# The classes of tests, the longest first.
CASES = __all__ = ["Page", "Drawing", "Taking", "OverTime", "Saying"]


class Page(Chromium):
    def test_plays_and_steps(self):
        path = self.open("torus:16x16")
        self.assertLess(path.stat().st_size, 2_000_000)
        self.assertIn("Step 0 (1 of 24)", self.text("#step"))
        self.find("#next").click()
        self.assertIn("Step 1 (2 of 24)", self.text("#step"))
        body = self.find("body")
        body.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("Step 2 ", self.text("#step"))
        body.send_keys("]")
        self.assertIn("Step 4 ", self.text("#step"))
        body.send_keys(Keys.END)
        self.assertIn("Step 23 ", self.text("#step"))
        body.send_keys(Keys.HOME)
        Select(self.find("#speed")).select_by_value("8")
        self.find("#play").click()
        self.wait(lambda _: int(self.text("#step").split()[1]) >= 3)
        frames = self.browser.execute_async_script(
            "const done = arguments[0], start = performance.now(); let frames = 0;"
            "const frame = (now) => { frames += 1;"
            "  if (now - start > 1000) done(frames); else requestAnimationFrame(frame); };"
            "requestAnimationFrame(frame);")
        # No graphics card, and other work on the machine; by itself it is 60.
        self.assertGreater(frames, 10)
        body.send_keys(" ")
        at = self.text("#step")
        self.assertEqual(self.find("#play").get_attribute("aria-label"), "Play (space)")
        before = self.painted()
        self.assertEqual((at, before), (self.text("#step"), self.painted()))

    def test_a_page_has_less_than_2_megabytes(self):
        """Of schedules that differ by rank, each number takes little more than a byte."""
        for machine, ports, most in [("torus:6x6/0,0+0", 4, 80_000), *([("torus:8x8x8/0,0,0+0", 6, 1_800_000)] if LONG else [])]:
            path = self.open(machine, "--ports", str(ports))
            self.assertLess(path.stat().st_size, 2_000_000, machine)
            data = self.browser.execute_script("return document.getElementById('data').textContent.length")
            self.assertLess(data, most, machine)
            self.follow(1, 20)
            self.assertIn("arrives.", self.text("#followed"))

    def test_every_block_is_followed_to_its_destination(self):
        chance = random.Random(1)
        machines = [("torus:16x16", 256, []), ("full:16", 16, []), ("cluster:4,4,2", 10, []),
                    ("twisted-torus:4x8", 32, []), ("torus:4x4/1,2/3,0+1", 15, []),
                    ("full:14", 14, ["--op", "allgather", "--ports", "3"])]
        machines += [("mesh:8x8", 64, []), ("torus:6x4x2", 48, [])] if LONG else []
        for machine, ranks, options in machines:
            self.open(machine, *options)
            gathers = "allgather" in options
            for i in range(len(Select(self.find("#algorithm")).options)):
                Select(self.find("#algorithm")).select_by_index(i)
                for _ in range(3 if LONG else 1):
                    a, b = chance.sample(range(ranks), 2)
                    self.follow(a, None if gathers else b)
                    if gathers:
                        self.assertIn("reaches all ranks", self.text("#followed"))
                    else:
                        self.arrives(a, b)

    def test_blocks_of_a_large_machine_are_followed_on_a_part_of_it(self):
        self.open("torus:64x64")
        self.choose("suh-shin")
        for a, b in [(0, 1), (4095, 17), (1000, 3210)]:
            self.follow(a, b)
            self.arrives(a, b)
        self.assertIn("too large to draw", self.text("#watch .note"))

    def test_groups_are_played_on_the_whole_machine(self):
        for machine, groups, blocks in [("torus:4x4", "dim:1", [(4, 7), (13, 14)]),
                                        ("cluster:4,3,3,1", "nodes", [(0, 3), (5, 4)])]:
            self.open(machine, "--groups", groups)
            self.assertIn(f"one of 4 groups of {machine.split(',')[0]}", self.text("#head"))
            for i in range(len(Select(self.find("#algorithm")).options)):
                Select(self.find("#algorithm")).select_by_index(i)
                for a, b in blocks:
                    self.follow(a, b)
                    self.arrives(a, b)
            self.follow(0, 5)
            self.assertNotIn("arrives.", self.text("#followed"))
            self.assertFalse(self.find("#sweep").is_displayed())

    def test_a_demand_matrix_is_drawn_as_heat(self):
        self.open("torus:4x4", "--demand", "sparse:1")
        self.assertIn("(sparse:1) blocks", self.text("h1") + self.browser.title)
        command = [PROGRAM, "select", "torus:4x4", "--demand", "sparse:1", "--json"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        self.assertIn(found["recommended"]["algorithm"], self.text("#head .hero"))
        titles = self.browser.execute_script(
            "return [...document.querySelectorAll('#demand rect title')].map((title) => title.textContent)")
        pairs = [tuple(map(int, re.match(r"(\d+) → (\d+): ", title).groups())) for title in titles]
        self.assertTrue(0 < len(set(pairs)) == len(pairs) < 16 * 15 and all(a != b for a, b in pairs), pairs)
        self.assertIn("times the mean", self.text("#demand"))
        self.assertFalse(self.find("#sweep").is_displayed())
        self.open("torus:16x16", "--demand", "uniform:1")
        marks = self.browser.execute_script("return document.querySelectorAll('#demand rect title').length")
        self.assertEqual(marks, 64 * 64)
        self.assertIn("pair of 4 consecutive ranks", self.text("#demand"))
        self.open("torus:4x4")
        self.assertFalse(self.find("#demand").is_displayed())

    def arrives(self, a, b):
        said = self.text("#followed")
        self.assertIn("arrives.", said)
        legs = re.findall(r"(\d+)→(\d+)", said)
        self.assertEqual((legs[0][0], legs[-1][1]), (str(a), str(b)), said)
        self.assertTrue(all(x[1] == y[0] for x, y in zip(legs, legs[1:])), said)

    def follow(self, a, b):
        self.browser.execute_script(
            "for (const [id, value] of [['source', arguments[0]], ['target', arguments[1]]])"
            "  if (value !== null) document.getElementById(id).value = value;"
            "document.getElementById('follow').click();", a, b)

    def test_shared_links_are_those_that_verify_counts(self):
        for machine, algorithm in [("torus:16x16", "pairwise-xor"), ("mesh:8x8", "direct"),
                                   ("torus:4x4x4", "one-factor"), ("torus:16x16", "suh-shin")]:
            self.open(machine)
            self.choose(algorithm)
            shared = self.browser.execute_script(
                "return [...document.querySelectorAll('.step-bar title')].map((title) =>"
                "  Number(/, ([0-9,]+) shared/.exec(title.textContent)?.[1].replaceAll(',', '') ?? 0))")
            setting = re.search(r"\((.*)\)", Select(self.find("#algorithm")).first_selected_option.text)
            given = [part for pair in (setting[1].split() if setting else []) for part in ("--set", pair)]
            command = [PROGRAM, "verify", machine, "--algorithm", algorithm, "--json", *given]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            self.assertEqual(sum(shared), found["link_conflicts"], (machine, algorithm))
            command[1] = "simulate"
            ran = subprocess.run([*command, "--conflicts", "1"], check=True, capture_output=True)
            for worst in json.loads(ran.stdout)["conflicts"]:
                self.browser.execute_script(
                    "for (let i = 0; i < arguments[0]; i += 1) document.getElementById('next').click()",
                    worst["step"])
                listed = self.text("#conflicts li")
                self.assertTrue(listed.startswith(f"{worst['link']} ×{worst['messages']} "), (listed, worst))
                self.assertIn(f"{worst['listed'][0]['from']}→{worst['listed'][0]['to']}", listed)

    def test_shared_links_are_named(self):
        self.open("mesh:8x8", "--algorithm", "direct")
        self.find("body").send_keys(Keys.ARROW_RIGHT)
        self.assertRegex(self.text("#conflicts"), r"\(\d,\d\)[+-][01] ×\d+ .*\d+→\d+")
        self.looks("mesh-shared", "#watch .canvas")

    def test_a_rank_is_followed_by_a_press(self):
        self.open("torus:16x16")
        canvas = self.find("#watch canvas")
        ActionChains(self.browser).move_to_element(canvas).perform()
        before = self.painted()
        # Somewhere near the middle of what is seen is a rank.
        for place in range(36):
            x, y = 8 * (place % 6), 8 * (place // 6)
            ActionChains(self.browser).move_to_element_with_offset(canvas, x, y).click().perform()
            if "sends" in self.text("#followed"):
                break
        self.assertRegex(self.text("#followed"), r"rank \d+ \(\d+,\d+\) sends .* receives")
        self.assertNotEqual(before, self.painted())
        self.find("body").send_keys(Keys.ESCAPE)
        self.assertEqual(self.text("#followed"), "")

    def test_space_turns_with_the_mouse(self):
        self.open("torus:4x4x4", scheme="dark")
        Select(self.find("#watch .plane")).select_by_value("")
        self.looks("torus-3d-dark", "#watch .canvas")
        before = self.painted()
        canvas = self.find("#watch canvas")
        ActionChains(self.browser).move_to_element(canvas).click_and_hold().move_by_offset(90, 20).release().perform()
        self.assertNotEqual(before, self.painted())
        self.assertEqual(self.text("#followed"), "")

    def test_the_sweep_tells_values(self):
        self.open("paragon-16x16")
        self.find("nav a[href='#sweep']").click()
        self.assertIn("Blocks of 1 KiB", self.text("#sweep .readout caption"))
        chart = self.find("#sweep .chart")
        ActionChains(self.browser).move_to_element_with_offset(chart, 300, 0).perform()
        self.assertNotIn("Blocks of 1 KiB", self.text("#sweep .readout caption"))
        self.browser.execute_script("document.querySelector('#sweep .chart').focus()")
        self.browser.switch_to.active_element.send_keys(Keys.HOME)
        self.assertIn("Blocks of 1 B", self.text("#sweep .readout caption"))
        self.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("Blocks of 2 B", self.text("#sweep .readout caption"))
        swept = subprocess.run([PROGRAM, "sweep", "paragon-16x16", "--json"], check=True, capture_output=True)
        for crossover in json.loads(swept.stdout)["crossovers"]:
            self.assertIn(crossover["algorithm"], self.text("#sweep"))
        self.looks("sweep", "#sweep figure")

    def test_the_front_tells_values(self):
        self.open("torus:16x16")
        before = self.text("#front .readout")
        self.browser.execute_script("document.querySelector('#front .chart').focus()")
        self.browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
        self.assertNotEqual(before, self.text("#front .readout"))
        self.looks("front", "#front figure")

    def test_the_ranking_leads_to_the_player(self):
        self.open("torus:16x16")
        buttons = self.browser.find_elements(By.CSS_SELECTOR, "#ranking .watch")
        self.browser.execute_script("arguments[0].click()", buttons[1])
        self.assertEqual(self.find("#algorithm").get_attribute("value"), "1")
        named = "const all = document.querySelector('#algorithm'); return all.options[all.selectedIndex].text"
        self.assertIn(self.browser.execute_script(named).split()[0], self.text("#heat .fact"))

    def test_on_a_phone_nothing_is_cut_off(self):
        for machine, *options in [("torus:16x16",), ("cluster:4,4,2",), ("full:16",), ("fat-tree:4,2", "--against", "mpich"),
                                  ("torus:256x64",)]:
            self.open(machine, *options, size=PHONE)
            wide = self.browser.execute_script("return document.documentElement.scrollWidth")
            self.assertLessEqual(wide, PHONE[0], machine)
        self.assertIn("too large to draw", self.text("#watch .note"))
        self.looks("period-phone", "#watch .canvas")

    def test_a_machine_without_a_period_is_shown_by_a_smaller_one(self):
        self.open("cluster:200*2")
        self.assertIn("cluster:8*2", self.text("#watch .note"))

    def test_other_machines_look_right(self):
        self.open("torus:16", "--algorithm", "direct", scheme="dark")
        self.looks("ring-dark", "#watch .canvas")
        self.open("cluster:4,4,2", "--algorithm", "clustered-factor")
        self.looks("cluster", "#watch .canvas")
        self.open("torus:16x16", "--algorithm", "suh-shin")
        self.looks("torus", "#watch .canvas")
        self.open("mesh:8x8", "--algorithm", "direct")
        self.looks("mesh-heat", "#heat .canvas")
        self.open("torus:2x2x2x2x2")

    def test_paper_has_no_buttons(self):
        self.open("mesh:8x8")
        self.emulate(DESKTOP, "light", "print")
        for hidden in ["nav", ".controls", ".watch"]:
            self.assertFalse(self.find(hidden).is_displayed(), hidden)
        self.assertTrue(self.find("#watch canvas").is_displayed())
        self.assertGreater(len(self.browser.execute_cdp_cmd("Page.printToPDF", {})["data"]), 10_000)

    def test_names_are_text_and_never_markup(self):
        name = "\"><img src=x onerror=\"document.title='caught'\"><!--"
        machine = Path(self.folder.name) / f"{name}.toml"
        machine.write_text((HERE.parent.parent / "topologies" / "dgx-h100-4x8.toml").read_text())
        self.open(str(machine))
        self.assertIn(name, self.text("h1"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "img"), [])
        self.assertIn(name, self.browser.title)


def passes(case):
    """The tests of a class, which have a browser of their own."""
    return subprocess.run([sys.executable, __file__, PROGRAM, case]).returncode == 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        unittest.main(verbosity=2)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        sys.exit(not all([*pool.map(passes, CASES)]))

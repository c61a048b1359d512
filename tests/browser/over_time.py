"""What the page opens on, and its timelines: steps, moments, models, two schedules side by side."""
import json
import subprocess

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from chromium import PROGRAM, Chromium


def answer(*arguments):
    ran = subprocess.run([PROGRAM, *arguments, "--json"], check=True, capture_output=True)
    return json.loads(ran.stdout)


class OverTime(Chromium):
    def shown(self, seconds):
        """A time as the page writes it."""
        scale, unit = (1, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
        digits = len(str(int(seconds * scale)))
        return f"{seconds * scale:.{max(0, 4 - digits)}f} {unit}"

    def test_the_page_opens_on_what_was_asked(self):
        best = answer("select", "torus:16x16")["choices"][0]
        for algorithm in ["suh-shin", "strided-rings"]:
            self.open("torus:16x16", "--algorithm", algorithm)
            ran = answer("simulate", "torus:16x16", "--algorithm", algorithm)
            hero = self.text(".hero")
            self.assertIn(f"You asked for {algorithm}: {self.shown(ran['time_seconds'])}", hero)
            self.assertTrue(self.text("#algorithm option:checked").startswith(algorithm))
            self.assertIn(algorithm, self.text(".tile dd"))
            self.assertIn(algorithm, self.text("#ranking .asked"))
            self.assertIn(self.shown(ran["time_seconds"]), self.text("#ranking .asked"))
            if ran["time_seconds"] > best["time_seconds"]:
                self.assertIn(f"{ran['time_seconds'] / best['time_seconds']:.2f}× the time of the fastest", hero)
            else:
                self.assertIn("the fastest.", hero)
        self.open("torus:16x16")
        self.assertIn(f"The fastest is {best['algorithm']}: {self.shown(best['time_seconds'])}", self.text(".hero"))

    def test_a_smaller_machine_runs_the_same_algorithm(self):
        for machine, algorithm in [("mesh:62x64", "suh-shin"), ("cluster:200*2", "node-radix"), ("full:201", "bruck")]:
            self.open(machine, "--algorithm", algorithm)
            self.assertTrue(self.text("#algorithm option:checked").startswith(algorithm), machine)
            note = self.text("#watch .screen .note")
            self.assertIn(f"{machine} under {algorithm} is too large for a page", note)
            self.assertIn("smaller machine of the same kind, under the same algorithm", note)

    def test_a_rearrangement_is_not_a_step(self):
        steps = answer("simulate", "full:16", "--algorithm", "bruck", "--set", "radix=2", "--rearrangement", "1GB/s")["steps"]
        self.open("full:16", "--algorithm", "bruck", "--set", "radix=2", "--rearrangement", "1GB/s")
        body = self.find("body")
        self.assertIn(f"Step 0 (1 of {steps})", self.text("#step"))
        body.send_keys(Keys.END)
        self.assertIn(f"Closing rearrangement, after {steps} of {steps} steps", self.text("#step"))
        body.send_keys(Keys.ARROW_LEFT)
        self.assertIn(f"({steps} of {steps})", self.text("#step"))

    def test_a_moment_of_the_timeline_is_shown_in_the_machine(self):
        path = self.open("torus:16x16", "--algorithm", "pairwise-xor", "--model", "fluid")
        self.assertLess(path.stat().st_size, 2_000_000)
        simulated = answer("simulate", "torus:16x16", "--algorithm", "pairwise-xor", "--model", "fluid")["time_seconds"]
        self.assertIn(f"By the fluid model it takes {self.shown(simulated)}", self.text("#head"))
        self.assertIn(self.shown(simulated), self.text("#ranking .asked"))
        # The model that was asked for is shown.
        self.assertIn(f"{self.shown(simulated)} by the fluid model", self.text(".ranks .hint"))
        chart, before = self.find(".gantt"), self.painted()
        ActionChains(self.browser).move_to_element_with_offset(chart, 20, 0).click().perform()
        self.assertRegex(self.text("#step"), r"^At [\d.]+ us, .*: \d+ messages on the way, \d+ links? shared")
        self.assertNotEqual(before, self.painted())
        self.assertRegex(self.text(".gantt .tip"), r"us: rank \d+ \(\d+,\d+\) (sends|receives|waits)")
        # By keyboard, the picture of a moment follows.
        chart.send_keys(Keys.HOME)
        self.assertIn("At 0 us, step 0: 256 messages on the way", self.text("#step"))
        pictures = set()
        for _ in range(3):
            chart.send_keys(Keys.ARROW_RIGHT)
            pictures.add(self.painted())
            self.assertIn(chart.get_attribute("aria-valuetext"), self.text("#step"))
        self.assertEqual(len(pictures), 3)
        chart.send_keys(Keys.END)
        self.assertEqual(self.text("#step"), f"Done at {self.shown(simulated)}.")
        self.press("#first")
        self.assertIn("Step 0 (1 of 255)", self.text("#step"))
        # From a moment on, time runs.
        chart.send_keys(Keys.HOME)
        Select(self.find("#speed")).select_by_value("8")
        self.press("#play")
        self.wait(lambda _: "At 0 us" not in self.text("#step") and self.text("#step").startswith("At"))
        self.press("#play")

    def test_ranks_in_the_timeline_do_what_the_model_says(self):
        """By the data of the page: ranks begin a step when they end the one before, and the last one ends the run."""
        for machine, algorithm in [("mesh:4x4", "direct"), ("torus:4x4*2", "node-aware"), ("torus:4x4/1,2", "direct")]:
            self.open(machine, "--algorithm", algorithm, "--model", "fluid")
            for model in ["steps", "fluid"]:
                Select(self.find(".ranks .model")).select_by_value(model)
                ran = answer("simulate", machine, "--algorithm", algorithm, "--model", model)
                self.assertIn(f"{self.shown(ran['time_seconds'])} by the {model} model", self.text(".ranks .hint"))
                chart = self.find(".gantt")
                chart.send_keys(Keys.END)
                self.assertIn("Done at", self.text("#step"))
                chart.send_keys(Keys.ARROW_LEFT)
                self.assertIn("on the way", self.text("#step"))

    def test_all_ranks_that_do_the_same_have_one_row(self):
        self.open("torus:16x16", "--algorithm", "suh-shin")
        self.assertIn("All ranks do the same at the same time.", self.text(".ranks .hint"))
        self.assertLess(self.find(".gantt").size["height"], 100)
        self.open("mesh:8x8", "--algorithm", "direct")
        self.assertGreater(self.find(".gantt").size["height"], 200)

    def test_endpoints_are_named_and_simulated(self):
        given = ["--algorithm", "direct", "--ports", "4", "--model", "fluid", "--set", "window=1", "--set", "message_overhead=2us"]
        self.open("torus:4x4", *given)
        ran = answer("simulate", "torus:4x4", *given)
        self.assertIn(f"By the fluid model it takes {self.shown(ran['time_seconds'])}, with a window of 1 message, message overhead 2.000 us.", self.text("#head"))
        self.assertIn("Accuracy: ", self.text("#notes"))
        self.assertIn(" --model fluid", self.text("#notes"))

    def test_machines_are_told_in_words(self):
        self.open("torus:8x8/1,2/3,0+1")
        self.assertIn("1 node is missing: 1,2; 1 link has failed, in both directions: 3,0+1", self.text("#head .lead"))
        self.open("torus:4x4*4")
        self.assertIn("64 ranks; 16 nodes of 4 ranks; 1 port", self.text("#head .lead"))

    def test_two_schedules_play_side_by_side(self):
        self.open("torus:16x16", "--algorithm", "suh-shin")
        beside = self.find("#beside")
        self.press("#beside")
        self.assertEqual(beside.get_attribute("aria-pressed"), "true")
        self.assertTrue(self.text("#algorithm-2 option:checked").startswith("strided-rings"))
        boxes = [screen.rect for screen in self.browser.find_elements(By.CSS_SELECTOR, ".screen")[:2]]
        self.assertEqual(boxes[0]["y"], boxes[1]["y"])
        self.assertLess(boxes[0]["x"] + boxes[0]["width"], boxes[1]["x"])
        self.find("body").send_keys(Keys.ARROW_RIGHT)
        self.assertIn("Step 1 (2 of 10)", self.text("#step"))
        self.assertIn("Step 1 (2 of 24)", self.text("#step-2"))
        # The shorter one stays at its end.
        self.press("#last")
        self.assertIn("Step 9 (10 of 10)", self.text("#step"))
        self.assertIn("Step 23 (24 of 24)", self.text("#step-2"))
        # At a moment, the faster one is done.
        self.find(".gantt").send_keys(Keys.END)
        self.assertIn("Done at 1.322 ms", self.text("#step"))
        self.assertIn("Done at 684.8 us", self.text("#step-2"))
        Select(self.find("#algorithm-2")).select_by_index(2)
        self.assertIn("Step 9 ", self.text("#step-2"))
        self.press("#beside")
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#step-2"), [])

    def test_bars_have_the_scale_of_the_rows_shown(self):
        self.open("torus:16x16")

        def widest():
            return self.browser.execute_script(
                "return Math.max(...[...document.querySelectorAll('#ranking .times')].map((bar) =>"
                "  Math.max(...[...bar.querySelectorAll('rect')].map((r) => Number(r.getAttribute('x')) + Number(r.getAttribute('width'))))))")
        self.assertAlmostEqual(widest(), 200, delta=0.01)
        rows = len(self.browser.find_elements(By.CSS_SELECTOR, "#ranking tbody tr"))
        self.find("#ranking .more").click()
        self.assertAlmostEqual(widest(), 200, delta=0.01)
        self.assertGreater(len(self.browser.find_elements(By.CSS_SELECTOR, "#ranking .ranking tbody tr")), rows)

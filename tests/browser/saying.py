"""What the page says in the units and words of its readers: bandwidth, gains over an MPI library, axes, winners, settings."""
import json
import re
import subprocess
from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from chromium import DESKTOP, PHONE, PROGRAM, Chromium

TIME = r"[\d.,]+ (ns|us|ms|s)"
SIZE = r"[\d.]+ (B|KiB|MiB)"


class Saying(Chromium):
    def asked(self, *command):
        found = subprocess.run([PROGRAM, *command, "--json"], check=True, capture_output=True)
        return json.loads(found.stdout)

    def all(self, selector, attribute="textContent"):
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one[arguments[1]])", selector, attribute)

    def columns(self, selector):
        """The columns of a table's rows by their names."""
        names = self.browser.execute_script(
            "return [...document.querySelectorAll(`${arguments[0]} th`)].map((cell) => cell.firstChild?.textContent)", selector)
        cells = self.all(f"{selector} tbody td")
        rows = [cells[i:i + len(names)] for i in range(0, len(cells), len(names))]
        return [dict(zip(names, row)) for row in rows]

    def test_steps_of_a_schedule_add_up_to_its_time(self):
        self.open("torus:16x16")
        for i in range(len(self.all("#algorithm option"))):
            Select(self.find("#algorithm")).select_by_index(i)
            took, told = self.browser.execute_script("""
                const { play } = document.querySelector('#watch canvas').view.drawing.schedule;
                const { ranking } = JSON.parse(document.getElementById('data').textContent);
                const own = ranking.find((one) => one.algorithm === play.algorithm && one.setting === play.setting);
                const total = (rows) => rows.flat().reduce((sum, time) => sum + time, 0);
                return [total(play.seconds), own && total(own.seconds)];""")
            self.assertTrue(told is None or abs(took - told) < 1e-9 * told, (i, took, told))

    def test_bandwidth_is_beside_every_time(self):
        for machine, *options in [("torus:16x16",), ("cluster:8*8",), ("full:14", "--op", "allgather", "--ports", "3")]:
            self.open(machine, *options)
            # As select says it.
            said = subprocess.run([PROGRAM, "select", machine, *options], check=True, capture_output=True).stdout.decode()
            rate, share, allowed = re.search(r"([\d.]+ [MG]B/s) a rank, (\d+) % of (what the [a-z ]+ allows?)", said).groups()
            tile = self.text(".tiles").replace("\n", " ")
            number, unit = rate.split()
            found = re.search(r"bandwidth of a rank ([\d.]+) ([MG]B/s) ", tile)
            self.assertEqual((float(found[1]), found[2]), (float(number), unit), machine)
            self.assertIn(f"{share} % of {allowed}; bus bandwidth", tile)
            first = self.columns("#ranking .ranking")[0]
            self.assertEqual(first["bandwidth"], f"{found[1]} {unit} {share} %")
            # The sweep has the rate of each size: it grows with blocks, and the bus has a block less.
            chart = self.find("#sweep .chart")
            self.browser.execute_script("arguments[0].focus()", chart)
            chart.send_keys(Keys.END)
            large = self.columns("#sweep table")[0]
            ranks = int(re.search(r"(\d+) ranks", self.text("#head"))[1])
            time, unit = large["time"].split()
            seconds = float(time) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]
            value, unit = large["bandwidth"].split()
            self.assertAlmostEqual(float(value) * {"MB/s": 1e6, "GB/s": 1e9}[unit] * seconds / (ranks << 20), 1, delta=2e-3)

    def test_a_library_has_its_row_its_line_and_the_gain(self):
        for machine, name, release, block in [("cluster:8*8", "openmpi", "4.1", "1KiB"), ("infiniband-8x4", "mpich", "4.2", "64KiB")]:
            against = ["--against", name, "--release", release]
            library = self.library(machine, block, against)
            row = next(row for row in self.columns("#ranking .ranking") if row["algorithm"].endswith("default"))
            self.assertTrue(row["algorithm"].startswith(library["algorithm"]), row)
            time = next(row[name] for name in ["time", "in step"] if name in row)
            self.assertRegex(time, TIME)
            self.assertEqual((row["gain"], row["× bound"] != ""), ("1.00×", True))
            best = self.columns("#ranking .ranking")[0]
            gain = library["time_seconds"] / library["schedule"]["time_seconds"]
            self.assertAlmostEqual(float(best["gain"][:-1]), gain, delta=0.006)
            lead = self.text(".library")
            self.assertIn(f"’s default, {library['algorithm']}, which takes {time}", lead)
            self.assertIn("faster than" if gain > 1 else "slower than", lead)
            self.assertIn(library["force"], lead)
            # Its line has its time and its algorithm at each size.
            chart = self.find("#sweep .chart")
            lines = self.browser.find_elements(By.CSS_SELECTOR, "#sweep [data-series]")
            self.assertEqual(lines[-1].find_element(By.CSS_SELECTOR, ".curve").get_attribute("stroke-dasharray"), "2 3")
            self.browser.execute_script("arguments[0].focus()", chart)
            chart.send_keys(Keys.HOME, *3 * [Keys.ARROW_RIGHT])
            entry = library["by_block"][0]
            own = next(row for row in self.columns("#sweep table") if "default" in row["algorithm and best setting"])
            self.assertTrue(own["algorithm and best setting"].endswith(f"default {entry['algorithm']}"), own)
            self.assertEqual((own["gain"], entry["block_bytes"]), ("1.00×", 8))
            self.assertIn(f"--against {name} --release {release}", self.text("#notes"))

    def library(self, machine, block, against):
        self.open(machine, "--block", block, *against)
        return self.asked("select", machine, "--block", block, *against)["library"]

    def test_axes_have_units_and_the_band_names_the_winners(self):
        for machine in ["torus:16x16", "cluster:8*8", "fat-tree:4,2"]:
            self.open(machine)
            ticks = self.all("#sweep .chart text[text-anchor='end'], #sweep .chart text[text-anchor='middle']:not(.name)")
            self.assertGreater(len(ticks), 12)
            for tick in ticks:
                self.assertRegex(tick, rf"^({TIME}|{SIZE})$")
                self.assertLess(float(tick.split()[0].replace(",", "")), 1024)
            won = []
            for one in self.asked("sweep", machine)["crossovers"]:
                won += [one["algorithm"]] if won[-1:] != [one["algorithm"]] else []
            self.assertEqual(self.all("#sweep .winner text"), won)
            # The band has no gaps, and a name is in its range or below its middle.
            boxes = self.browser.execute_script("""
                return [...document.querySelectorAll('#sweep .winner')].map((group) => {
                  const [band, text] = ['rect', 'text'].map((tag) => group.querySelector(tag).getBoundingClientRect());
                  return [band.left, band.right, (text.left + text.right) / 2];
                })""")
            for (left, right, middle), after in zip(boxes, [*boxes[1:], [boxes[-1][1]]]):
                self.assertTrue(left - 1 < middle < right + 1, (machine, boxes))
                self.assertAlmostEqual(right, after[0], delta=2)

    def test_settings_are_told_under_the_pointer_and_in_a_list(self):
        known = {(one["name"], own["name"]): own["values"] for one in self.asked("algorithms")["algorithms"] for own in one["parameters"]}
        told = set()
        for machine, *options in [("torus:16x16",), ("cluster:8*8",), ("fat-tree:4,2",), ("torus:6x6/0,0+0", "--ports", "4")]:
            self.open(machine, *options)
            rows = self.browser.execute_script("""
                return [...document.querySelectorAll('#ranking .parameter, #sweep .parameter')].map((one) =>
                  [one.parentElement.parentElement.textContent.trim().split(/[ (]/)[0], one.textContent, one.title])""")
            self.assertTrue(rows)
            words = dict(zip(self.all(".settings dt"), self.all(".settings dd")))
            for algorithm, text, title in rows:
                key = text.split("=")[0]
                self.assertTrue(title.startswith(f"{key.split('.')[-1]} = "), (text, title))
                if (algorithm, key) in known:
                    self.assertEqual(title, f"{key} = {known[algorithm, key]}")
                    self.assertEqual(words[f"{algorithm}: {key}"], known[algorithm, key])
                    told.add((algorithm, key))
            # Nothing is a setting without a meaning.
            plain = self.browser.execute_script("""
                return [...document.querySelectorAll('#ranking .setting, #sweep .setting, .tile .setting')].flatMap((one) =>
                  [...one.childNodes].filter((node) => node.nodeType === 3 && node.data.includes('=')).map((node) => node.data))""")
            self.assertEqual(plain, [], machine)
        self.assertGreaterEqual(told, {("node-aware", "lanes"), ("node-radix", "radix"), ("bruck", "radix")})

    def test_process_grids_have_bars_of_their_times(self):
        page = Path(self.folder.name) / "fft.html"
        subprocess.run([PROGRAM, "fft", "256x256x256", "torus:8x8", "--out", page], check=True, capture_output=True)
        for size in DESKTOP, PHONE:
            self.emulate(size, "light")
            self.browser.get(page.as_uri())
            self.assertTrue(self.text(".hero").startswith("Use slabs 64 x 1: 4.278 ms"))
            bars = self.browser.find_elements(By.CSS_SELECTOR, "td .times")
            lengths = [sum(part.size["width"] for part in bar.find_elements(By.CSS_SELECTOR, ".bar")) for bar in bars]
            self.assertGreater(len(bars), 4)
            self.assertEqual(lengths.index(min(lengths)), 0)
            self.assertGreater(min(lengths), 10)

    def test_words_are_explained_where_they_appear_first(self):
        self.open("cluster:8*8")
        meanings = self.text(".meanings")
        for word in ["lanes = ", "charged volume: "]:
            self.assertIn(word, meanings)
        self.open("paragon-16x16")
        self.assertIn("rearrangement: ", self.text(".meanings"))

"""Pages of `topocoll report` in headless Chromium."""
import atexit
import base64
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from PIL import Image, ImageChops, ImageStat
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

HERE = Path(__file__).resolve().parent
SHOTS = HERE / "shots"
PROGRAM = Path(sys.argv.pop(1) if len(sys.argv) > 1 else "target/debug/topocoll").resolve()

# Screenshots are kept so wide, and may differ by so much of 255 on average: fonts differ by system.
WIDTH = 320
TOLERANCE = 7.0

DESKTOP, PHONE = (1280, 900), (390, 800)

# All machines, sizes, angles and blocks; without the variable a part of them.
LONG = "TOPOCOLL_SWEEP" in os.environ


class Chromium(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """One browser and one folder of pages for all cases."""
        if hasattr(Chromium, "browser"):
            return
        Chromium.folder = tempfile.TemporaryDirectory()
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                         "--disable-background-networking", "--disable-component-update"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        Chromium.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        Chromium.browser.set_script_timeout(20)
        atexit.register(Chromium.browser.quit)

    def tearDown(self):
        """Whatever was done, nothing went wrong and nothing was asked of any network."""
        said = [entry["message"] for entry in self.browser.get_log("browser")]
        self.assertEqual(said, [])
        for entry in self.browser.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                self.assertTrue(url.startswith(("file:///", "data:", "about:")), url)
                self.assertFalse(url.startswith("file:///") and not url.endswith(".html")
                                 and ".html#" not in url, url)

    def open(self, machine, *options, size=DESKTOP, scheme="light"):
        path = Path(self.folder.name) / f"{re.sub('[^a-z0-9]', '_', machine + ''.join(options))}.html"
        if not path.exists():
            command = [PROGRAM, "report", machine, *options, "--out", path]
            subprocess.run(command, check=True, capture_output=True)
        self.emulate(size, scheme)
        self.browser.get(path.as_uri())
        self.wait(lambda browser: browser.execute_script("return document.documentElement.dataset.ready"))
        return path

    def wait(self, condition):
        WebDriverWait(self.browser, 10, poll_frequency=0.02).until(condition)

    def emulate(self, size, scheme, media=""):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE})

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).text

    def press(self, control, key=Keys.ENTER):
        """Presses a key on an element, or on the first one of a selector."""
        control = self.find(control) if isinstance(control, str) else control
        self.browser.execute_script("arguments[0].focus()", control)
        control.send_keys(key)

    def choose(self, algorithm):
        names = [option.text for option in Select(self.find("#algorithm")).options]
        at = next(i for i, name in enumerate(names) if name.startswith(algorithm))
        Select(self.find("#algorithm")).select_by_index(at)

    def looks(self, name, selector):
        """Compares a part of the page with its kept screenshot, both made small."""
        box = self.browser.execute_script(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.x + scrollX, b.y + scrollY, b.width, b.height];", selector)
        x, y, width, height = box
        image = self.picture(x, y, width, height)
        image = image.resize((WIDTH, round(WIDTH * height / width)), Image.LANCZOS)
        kept = SHOTS / f"{name}.png"
        if os.environ.get("UPDATE"):
            image.quantize(64).save(kept, optimize=True)
        before = Image.open(kept).convert("RGB")
        # A line of text more or less is a matter of fonts.
        self.assertLess(abs(before.height - image.height), 0.12 * before.height, name)
        image = image.resize(before.size)
        difference = ImageStat.Stat(ImageChops.difference(before, image)).mean
        self.assertLess(sum(difference) / 3, TOLERANCE, f"{name}: {difference}")

    def picture(self, x, y, width, height):
        """A part of the page, seen or not."""
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True,
            "clip": {"x": x, "y": y, "width": width, "height": height, "scale": 1}})
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    def painted(self, selector="#watch canvas"):
        return self.browser.execute_script(
            "return document.querySelector(arguments[0]).toDataURL()", selector)

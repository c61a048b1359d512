"""Taking the page along: links, pictures, tables, paper and phones; names, roles and keys of all controls."""
import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from PIL import Image
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from chromium import DESKTOP, HERE, PHONE, PROGRAM, Chromium

# The folder of whole pages and pictures, to be looked at; none are made without it.
GALLERY = os.environ.get("GALLERY")

MACHINES = {
    "torus-16x16": ["torus:16x16", "--algorithm", "suh-shin"],
    "mesh-8x8x8": ["mesh:8x8x8"],
    "twisted-4x4x8": ["twisted-torus:4x4x8"],
    "torus-4x4-nodes": ["torus:4x4*4", "--model", "fluid"],
    "cluster-20x48": ["cluster:20*48"],
    "fat-tree": ["fat-tree:4,3"],
    "dragonfly": ["dragonfly:2,4,2"],
    "full-16": ["full:16"],
    "broken": ["torus:8x8/1,2/3,0+1"],
}


class Taking(Chromium):
    def address(self):
        return self.browser.execute_script("return location.hash")

    def go(self, hash_):
        """Changes the address; the page has followed at the end."""
        self.browser.execute_async_script(
            "const [hash, done] = arguments;"
            "addEventListener('hashchange', () => done(), { once: true }); location.hash = hash;", hash_)

    def test_a_link_reopens_what_is_shown(self):
        path = self.open("torus:16x16", "--algorithm", "pairwise-xor", "--model", "fluid")
        self.browser.get(f"{path.as_uri()}#step=5&from=3&to=8")
        self.browser.refresh()
        self.assertIn("Step 5 (6 of 255)", self.text("#step"))
        self.assertIn("The block of rank 3 for rank 8 ", self.text("#followed"))
        # Each state has an address that shows it again.
        Select(self.find(".ranks .model")).select_by_value("steps")
        self.press("#beside")
        self.find(".gantt").send_keys(Keys.PAGE_DOWN)
        shown = [self.text("#step"), self.text("#step-2"), self.text("#followed"), self.painted()]
        self.assertIn("At ", shown[0])
        address = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(address)
        again = [self.text("#step"), self.text("#step-2"), self.text("#followed"), self.painted()]
        self.assertEqual(shown, again)
        # The address of an open page may change.
        self.go("#step=7&rank=17")
        self.assertIn("Step 7 (8 of 255)", self.text("#step"))
        self.assertIn("rank 17 (1,1) sends", self.text("#followed"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#step-2"), [])
        # Links to parts of the page are no states.
        self.go("#ranking")
        self.assertIn("Step 7 ", self.text("#step"))

    def test_a_wrong_link_says_what_is_wrong(self):
        self.open("torus:16x16")
        self.go("#step=400&from=3&to=x&model=none&schedule=<img src=x onerror=\"document.title='caught'\">")
        said = self.text("#watch .wrong")
        for wrong in ["step=400 is not a number from 0 to 23", "to=x is not a number from 0 to 255",
                      "no timeline by model=none", "does not play <img src=x"]:
            self.assertIn(wrong, said)
        self.assertNotEqual(self.browser.title, "caught")
        self.go("#step=4")
        self.assertFalse(self.find("#watch .wrong").is_displayed())

    def test_pictures_are_saved(self):
        self.open("mesh:8x8", "--algorithm", "direct")
        folder = Path(self.folder.name) / "saved"
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        buttons = [button for button in self.browser.find_elements(By.CSS_SELECTOR, ".take") if button.text in ("SVG", "PNG")]
        self.assertEqual([button.text for button in buttons], ["SVG", "PNG", "PNG", "SVG", "PNG", "SVG", "PNG", "SVG", "PNG"])
        for count, button in enumerate(buttons, 1):
            self.press(button)
            self.wait(lambda _: len(list(folder.glob("*.[sp][vn]g"))) == count)
        names = sorted(path.name for path in folder.iterdir())
        self.assertIn("topocoll-mesh-8x8-direct-step-0.svg", names)
        self.assertIn("topocoll-mesh-8x8-direct-step-0-ranks.png", names)
        for path in folder.iterdir():
            if path.suffix == ".png":
                image = Image.open(path).convert("RGB")
                self.assertGreater(len(image.getcolors(1 << 24)), 5, path)
                self.assertGreater(min(image.size), 60, path)
            else:
                root = ElementTree.parse(path).getroot()
                self.assertTrue(root.tag.endswith("}svg"), path)
                text = path.read_text()
                self.assertNotIn("class=", text)
                self.assertNotIn("var(", text)
                self.assertGreater(len(list(root.iter())), 60, path)
        shutil.rmtree(folder)

    def pasted(self):
        """What the clipboard holds, pasted as a person would."""
        self.browser.execute_script(
            "const area = document.createElement('textarea'); area.id = 'paste'; document.body.append(area); area.focus();")
        area = self.find("#paste")
        area.send_keys(Keys.CONTROL, "v")
        text = area.get_attribute("value")
        self.browser.execute_script("document.getElementById('paste').remove()")
        return text

    def test_tables_and_links_are_copied_as_text(self):
        self.open("torus:16x16")
        for refuse in [False, True]:
            if refuse:
                # Then the text is copied through a selection.
                self.browser.execute_script("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
            for selector in ["#ranking .take", "#sweep .take[aria-label^='Copy']", "#watch .take[aria-label^='Copy']"]:
                button = self.find(selector)
                self.press(button)
                self.wait(lambda _: "Copied" in button.find_element(By.XPATH, "..").text)
                text = self.pasted()
                if "watch" in selector:
                    self.assertEqual(text, self.browser.current_url)
                    continue
                rows = [line.split("\t") for line in text.rstrip("\n").split("\n")]
                self.assertEqual({len(row) for row in rows}, {len(rows[0])}, text)
                self.assertIn("algorithm", rows[0][0])
                # The sweep is in step.
                name, time = ("landing=short last=all share=classes", "684.8 us") if "ranking" in selector \
                    else ("share=parts", "609.1 us")
                self.assertIn(f"strided-rings {name}", [row[0] for row in rows])
                self.assertIn(time, [row[1] for row in rows])

    def test_all_controls_have_names_and_roles(self):
        self.open("mesh:4x4x4", "--model", "fluid")
        self.press("#beside")
        self.browser.execute_cdp_cmd("Accessibility.enable", {})
        nodes = self.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        found = {}
        for node in nodes:
            role = node.get("role", {}).get("value", "")
            if not node.get("ignored"):
                found.setdefault(role, []).append(node.get("name", {}).get("value", ""))
        self.assertIn("table", found)
        for role in ["button", "combobox", "slider", "spinbutton", "link", "application", "image", "heading"]:
            self.assertEqual([name for name in found[role] if not name.strip()], [], role)
        for group in ["Player", "Timeline", "View"]:
            self.assertIn(group, found["group"])
        for name in ["Play (space)", "First step (Home)", "Step back (left arrow)", "Step on (right arrow)", "Last step (End)",
                     "Two side by side", "Copy a link to what is shown", "Follow", "Clear", "Copy the ranking as text",
                     "Save this picture as SVG", "Save this picture as PNG"]:
            self.assertIn(name, found["button"])
        self.assertEqual(found["slider"], ["Moment", "Moment"])
        self.assertEqual(len(found["spinbutton"]), 2)
        self.browser.execute_cdp_cmd("Accessibility.disable", {})

    def test_all_controls_are_reached_and_used_by_keyboard(self):
        self.open("mesh:4x4", "--model", "fluid")
        self.browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
        wanted = self.browser.execute_script(
            "return [...document.querySelectorAll('a, button, select, input, summary, [tabindex=\"0\"]')]"
            "  .filter((one) => one.checkVisibility() && !one.disabled && !one.closest('details:not([open]) > :not(summary)')).length")
        reached = 0
        body = self.find("body")
        for _ in range(wanted + 5):
            body = self.browser.switch_to.active_element
            body.send_keys(Keys.TAB)
            if self.browser.execute_script("return document.activeElement === document.body"):
                break
            reached += 1
        self.assertEqual(reached, wanted)

        self.press("#next")
        self.assertIn("Step 1 ", self.text("#step"))
        self.press("#back", Keys.SPACE)
        self.assertIn("Step 0 ", self.text("#step"))
        self.press("#last")
        self.press("#first")
        self.assertIn("Step 0 ", self.text("#step"))
        self.press("#phase", Keys.ARROW_DOWN)
        self.assertNotIn("Step 0 ", self.text("#step"))
        self.press(".ranks .model", Keys.ARROW_UP)
        self.assertIn("by the steps model", self.text(".ranks .hint"))
        self.press("#source", "3")
        self.press("#target", "8" + Keys.ENTER)
        self.assertIn("The block of rank 3 for rank 8", self.text("#followed"))
        self.press("#unfollow")
        self.assertEqual(self.text("#followed"), "")
        self.press("#beside")
        self.assertIn("(", self.text("#step-2"))
        self.press("#beside")
        self.press("#ranking .watch:not(tr:first-child *)")
        self.press("#algorithm", Keys.END)
        self.press("#play")
        self.assertEqual(self.find("#play").get_attribute("aria-label"), "Pause (space)")
        self.press("#play")
        self.press("#ranking summary")
        self.assertTrue(self.find("#ranking details table").is_displayed())

    def test_on_a_phone_no_time_is_cut(self):
        for machine in ["torus:16x16", "torus:4x4*4", "cluster:4,4,2"]:
            self.open(machine, size=PHONE)
            cut = self.browser.execute_script(
                "return [...document.querySelectorAll('#ranking .ranking td, #sweep td')].filter((cell) =>"
                "  / [mu]?s$/.test(cell.textContent) && cell.checkVisibility()).map((cell) => cell.getBoundingClientRect())"
                "  .filter((box) => box.left < 0 || box.right > innerWidth).length")
            self.assertEqual(cut, 0, machine)

    def test_hostile_names_of_files_are_text(self):
        evil = "<script>document.title='caught'</script>"
        schedule = Path(self.folder.name) / f"{evil.replace('/', '_')}.jsonl"
        command = [PROGRAM, "schedule", "full:4", "--algorithm", "direct", "--out", schedule]
        subprocess.run(command, check=True, capture_output=True)
        self.open("full:4", "--schedule", str(schedule))
        self.assertNotEqual(self.browser.title, "caught")
        self.assertIn("<script>", self.text("#ranking"))
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "script")), 2)

    @unittest.skipUnless(GALLERY, "no folder for it")
    def test_the_gallery(self):
        """Whole pages at two widths, light and dark, and printed, to be looked at."""
        folder = Path(GALLERY)
        folder.mkdir(parents=True, exist_ok=True)
        for name, command in MACHINES.items():
            self.open(*command)
            for size, scheme, media in [(DESKTOP, "light", ""), (DESKTOP, "dark", ""), (PHONE, "light", ""),
                                        (PHONE, "dark", ""), (DESKTOP, "light", "print")]:
                self.emulate((1400, 900) if size == DESKTOP else size, scheme, media)
                self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
                image = self.whole()
                self.assertEqual(image.width, 1400 if size == DESKTOP else 390)
                image.save(folder / f"{name}-{image.width}-{media or scheme}.png")

    def whole(self):
        height, width = self.browser.execute_script("return [document.documentElement.scrollHeight, innerWidth]")
        return self.picture(0, 0, width, height)

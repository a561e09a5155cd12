"""A real JupyterLab and a real browser, each with folders of its own.

Needs Playwright (the extra ``browser``) and Chromium. Where one is missing the tests are skipped,
and fail instead under ``GPUTUTOR_BROWSER=1``. Pictures of what was seen go to the folder that
``GPUTUTOR_SCREENSHOTS`` names.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 120  # for anything that is waited for
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},  # every cell is on the page
}
#: The pictures of the badges, which come from elsewhere: the tests ask nobody else's server.
BADGES = re.compile(r"https://[^?#]*badge[^?#]*\.svg|https://kaggle\.com/static/images/.*\.svg")
NO_PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="117" height="20"/>'
ERROR = '[data-mime-type="application/vnd.jupyter.error"]'
IDLE = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'


def missing(what):
    """Skip, or fail where a browser is demanded."""
    if os.environ.get("GPUTUTOR_BROWSER") == "1":
        pytest.fail(f"{what}, and GPUTUTOR_BROWSER=1 demands a browser")
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser():
    if "PYTEST_XDIST_WORKER" in os.environ:
        missing("a browser is timed, so its tests do not run beside others: give -n 0")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed: pip install -e '.[browser]'")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        missing(f"no browser is installed: none of {', '.join(BROWSERS)} is there")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory, browser):
    """Return folder, address and token of a running JupyterLab with the notebooks in it."""
    home = tmp_path_factory.mktemp("lab")
    for name, settings in SETTINGS.items():
        path = home / f"settings/@jupyterlab/{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings), encoding="utf-8")
    shutil.copytree(ROOT / "notebooks", home / "work", ignore=shutil.ignore_patterns(".*"))
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    environment = {
        **os.environ,
        **{name: str(home / folder) for name, folder in folders.items()},
        "GPUTUTOR_SIMULATE": "T4",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    token = secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        f"--ServerApp.root_dir={home / 'work'}",
        "--LabApp.expose_app_in_browser=True",
    ]
    environment["JUPYTER_TOKEN"] = token
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield home / "work", _address(home / "runtime", process, home / "log"), token
    finally:
        process.terminate()
        process.wait(SECONDS)


def _address(runtime, process, log):
    """Return where the server answers, once it does."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                url = json.loads(path.read_text(encoding="utf-8"))["url"]
                with urllib.request.urlopen(f"{url}api", timeout=5):
                    return url
            except (OSError, ValueError):
                pass  # not yet
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")


class Notebook:
    """A notebook that is open in JupyterLab."""

    def __init__(self, page, name):
        self.page = page
        self.name = name
        self.problems = []
        page.set_default_timeout(1000 * SECONDS)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("console", self._console)
        page.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        page.on("response", self._response)

    def _console(self, message):
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def _response(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")

    def run_all(self):
        """Run every cell, and wait until the last has run or one has failed."""
        self.page.evaluate(
            "[...jupyterapp.shell.currentWidget.content.model.cells]"
            ".forEach(c => { if (c.type === 'code') c.clearExecution(); })"
        )
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(
            """error => {
                const cells = [...jupyterapp.shell.currentWidget.content.model.cells];
                const done = cells.every(c => c.type !== 'code' || c.executionCount !== null);
                return done || document.querySelector(error);
            }""",
            arg=ERROR,
        )
        self.page.wait_for_selector(IDLE)

    def command(self, name, **arguments):
        """Start a command of JupyterLab's, as its menus do; some end only when the kernel does."""
        start = "([name, options]) => { jupyterapp.commands.execute(name, options); }"
        self.page.evaluate(start, [name, arguments])

    def settle(self):
        """Wait until the kernel has done all that it was asked so far."""
        self.page.evaluate(
            "jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo()"
            ".then(() => 0)"
        )

    def fit(self, width):
        """Make the window as high as the notebook, and show the notebook alone, from its top."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.evaluate("jupyterapp.shell.collapseLeft()")
        height = self.page.evaluate(
            """() => {
                document.activeElement.blur();
                const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
                const [first, last] = [cells[0], cells.at(-1)].map(c => c.getBoundingClientRect());
                return Math.ceil(last.bottom - first.top);
            }"""
        )
        self.page.set_viewport_size({"width": width, "height": height + 200})
        self.page.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")

    def errors(self):
        """Return the error outputs that the page shows."""
        return self.page.locator(ERROR).all_inner_texts()

    def panels(self):
        """Return the live panels: their boxes, one for each call of explore."""
        return self.page.locator(".gpututor-panel")


@pytest.fixture
def opened(server, browser, screenshots):
    """Return a function that opens a notebook: one of the course, or the cells it is given."""
    work, url, token = server
    pages = []

    def open_it(name, *cells, width=1280, height=900):
        if cells:
            codes = [nbformat.v4.new_code_cell(cell) for cell in cells]
            notebook = nbformat.v4.new_notebook(cells=codes)
            notebook.metadata["kernelspec"] = {  # without it, a dialogue asks for a kernel
                "display_name": "Python 3", "language": "python", "name": "python3",
            }  # fmt: skip
            nbformat.write(notebook, work / name)
        page = browser.new_page(viewport={"width": width, "height": height})
        pages.append(page)
        page.route(BADGES, lambda r: r.fulfill(content_type="image/svg+xml", body=NO_PICTURE))
        shown = Notebook(page, name)
        page.goto(f"{url}lab/tree/{name}?token={token}&reset")
        page.wait_for_selector(IDLE)
        # The sign says idle also before there is a kernel.
        page.evaluate(
            """async () => {
                const context = jupyterapp.shell.currentWidget.sessionContext;
                await context.ready;
                await context.session.kernel.info;
            }"""
        )
        if cells:
            shown.run_all()
            assert shown.errors() == []
        return shown

    yield open_it
    for page in pages:
        page.screenshot(path=screenshots / "last.png")  # of a failed test, what it saw
        page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
        page.close()


@pytest.fixture
def screenshots(tmp_path):
    """Return the folder for pictures of what was seen."""
    folder = Path(os.environ.get("GPUTUTOR_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder

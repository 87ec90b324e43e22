"""A browser that opens what was written, and remembers what it complained of and whom it asked."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from report_records import fill

from repro.pages.build import read_results
from repro.pages.scale_data import ScaleData, scale_data
from repro.web.files import write_reports

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60_000  # milliseconds; Playwright's own 5 s are too few where other work runs
Opener = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, as the system has it; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip(
            f"needs a browser: install Debian's package chromium-headless-shell (looked for {', '.join(CHROMIUM)})."
        )
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium starts no sandbox as root
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=[*as_root, "--disable-dev-shm-usage"])
        yield started
        started.close()


@contextmanager
def opening(browser: Any) -> Iterator[Opener]:
    """open(file, hash="", width=1280, dark=False, before="") -> a page; its `complaints` must be empty at the end.

    Complaints are errors of scripts, what the console has as an error or a warning, and requests for anything but the
    file itself.
    """
    contexts = []

    def open_page(
        file: Path, hash: str = "", *, width: int = 1280, height: int = 900, dark: bool = False, before: str = ""
    ) -> Any:
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(before)
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(f"error: {error}"))
        page.on("console", lambda said: said.type in ("error", "warning") and page.complaints.append(said.text))
        page.on("request", lambda asked: asked.url.split("#")[0] != file.as_uri() and page.complaints.append(asked.url))
        page.goto(file.as_uri() + hash)
        return page

    yield open_page
    complaints = [one for context in contexts for page in context.pages for one in page.complaints]
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def opened(browser: Any) -> Iterator[Opener]:
    """Opens pages for one test."""
    with opening(browser) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def opened_once(browser: Any) -> Iterator[Opener]:
    """Opens pages that the tests of a file share."""
    with opening(browser) as open_page:
        yield open_page


@pytest.fixture(scope="session")
def made(made_once: Callable[[str, Callable[[Path], object]], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with the report of one scale, laptop, and the index."""

    def fill_and_report(results: Path) -> None:
        fill(results)
        write_reports(results)

    return Path(shutil.copytree(made_once("report", fill_and_report), tmp_path_factory.mktemp("project") / "results"))


@pytest.fixture(scope="session")
def laptop(made: Path) -> ScaleData:
    """What the report of that scale is made of."""
    (result_set,) = read_results(made, own=False)
    data = scale_data(result_set)
    assert data
    return data

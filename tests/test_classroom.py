"""The hub's configuration says what docs/classroom/README.md says."""

import re
from pathlib import Path

import pytest

config = pytest.importorskip("traitlets.config")

FOLDER = Path(__file__).parents[1] / "docs/classroom"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")


def load(name):
    return config.loader.PyFileConfigLoader(name, path=str(FOLDER)).load_config()


def test_learners_have_limits():
    hub = load("jupyterhub_config.py")
    gib = int(re.search(r"(\d+) GiB of address space", TEXT)[1])
    cores = int(re.search(r"a kernel takes (\d+) cores", TEXT)[1])
    environment = hub.Spawner.environment
    assert environment["GPUTUTOR_KIBIBYTES"] == str(gib * 2**20)
    assert "ulimit -v" in " ".join(hub.Spawner.cmd)
    assert hub.Spawner.mem_limit == f"{gib}G"
    assert environment["OMP_NUM_THREADS"] == str(cores) == str(hub.Spawner.cpu_limit)
    assert environment["GPUTUTOR_SIMULATE"] == "T4"
    assert any("cull_idle_timeout=3600" in argument for argument in hub.Spawner.args)
    assert (Path(environment["GPUTUTOR_COURSE"]) / "00_start_here.ipynb").is_file()
    assert hub.Authenticator.allowed_users == set()  # without a list, nobody
    assert "allow_all" not in hub.Authenticator


def test_the_trial_stays_on_this_machine_and_keeps_the_limits(monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HUB_TOKEN", "a token")
    hub = load("trial_config.py")
    urls = (hub.JupyterHub.bind_url, hub.JupyterHub.hub_bind_url, hub.ConfigurableHTTPProxy.api_url)
    assert all(url.startswith("http://127.0.0.1:") for url in urls)
    assert hub.Spawner.cmd == load("jupyterhub_config.py").Spawner.cmd
    assert hub.JupyterHub.services[0]["api_token"] == "a token"


def test_the_page_names_the_files():
    named = set(re.findall(r"\]\(([\w.]+\.py)\)", TEXT))
    assert named == {path.name for path in FOLDER.glob("*.py")}

"""The same hub on this machine only, without accounts: to try it, never to serve a class.

``GPUTUTOR_HUB_TOKEN=... jupyterhub -f docs/classroom/trial_config.py``, as anybody.
"""

import os
from pathlib import Path

load_subconfig(str(Path(__file__).with_name("jupyterhub_config.py")))  # noqa: F821
c = get_config()  # noqa: F821

c.JupyterHub.bind_url = "http://127.0.0.1:8765"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:8766"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:8767"
c.JupyterHub.spawner_class = "simple"  # each a folder of their own, all the same user
c.SimpleLocalProcessSpawner.home_dir_template = str(Path("homes/{username}").resolve())
if os.geteuid() == 0:  # as in a container; jupyter does not start there without it
    c.Spawner.args = [*c.Spawner.args, "--allow-root"]
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.services = [{"name": "trial", "api_token": os.environ["GPUTUTOR_HUB_TOKEN"]}]
c.JupyterHub.load_roles = [
    {
        "name": "trial",
        "services": ["trial"],
        "scopes": ["admin:users", "admin:servers", "access:servers"],
    }
]

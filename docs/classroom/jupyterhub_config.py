"""JupyterHub for a class on one Linux machine: a server and a copy of the notebooks for each.

``jupyterhub -f docs/classroom/jupyterhub_config.py``, as root, in the environment that the course
is installed in. README.md beside this file says what each part is for.
"""

from pathlib import Path

c = get_config()  # noqa: F821  JupyterHub gives it to this file

COURSE = Path(__file__).resolve().parents[2] / "notebooks"
LEARNERS = Path(__file__).with_name("learners.txt")  # one name of a user of this machine a line
GIBIBYTES = 8  # of address space for a learner's server, and for each kernel of it
CORES = 2  # for the arithmetic of a kernel

c.JupyterHub.bind_url = "http://:8000"  # put a web server with TLS before it, or set ssl_key
c.JupyterHub.concurrent_spawn_limit = 8  # a class arrives all at once: the others wait their turn
c.JupyterHub.active_server_limit = 40

c.Authenticator.allowed_users = set(LEARNERS.read_text().split()) if LEARNERS.exists() else set()

# As the learner: a copy of the course, where none of their own work is lost; then the limits.
START = """
cp -rn "$GPUTUTOR_COURSE" . &&
ulimit -v "$GPUTUTOR_KIBIBYTES" &&
exec jupyterhub-singleuser "$@"
"""
c.Spawner.cmd = ["bash", "-c", START, "learner"]
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=3600",  # seconds: a kernel holds its memory
    "--MappingKernelManager.cull_interval=300",
    "--ServerApp.shutdown_no_activity_timeout=7200",
]
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120  # seconds; 30 were too few when all come
c.Spawner.environment = {
    "GPUTUTOR_COURSE": str(COURSE),
    "GPUTUTOR_KIBIBYTES": str(GIBIBYTES * 2**20),
    "GPUTUTOR_SIMULATE": "T4",  # all simulate; take it out where each learner has a GPU
    "OMP_NUM_THREADS": str(CORES),
}
# For spawners that keep limits themselves, such as SystemdSpawner and DockerSpawner.
c.Spawner.mem_limit = f"{GIBIBYTES}G"
c.Spawner.cpu_limit = CORES

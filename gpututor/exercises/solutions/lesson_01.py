"""Reference solutions of lesson 01, as a learner would write them."""


def pick_device(facts):
    if facts.tiny_op == "ok":  # the only proof that a GPU works
        return "cuda"
    if facts.mps:
        return "mps"
    if facts.xpu:
        return "xpu"
    return "cpu"


# The lesson's own cell "checks", so that the solution below can run.
def major(version):
    return int(version.split(".")[0]) if version else 0


def driver_is_wrong(f):
    lent = f.container != "none" or f.platform != "none"  # a driver comes from outside
    missing = not f.driver_version and not lent
    return missing or 0 < major(f.driver_cuda) < major(f.torch_cuda)


checks = {
    "usability": lambda f: f.tiny_op != "ok",
    "architecture": lambda f: "no kernel image" in (f.tiny_op or ""),
    "visibility": lambda f: f.device_count == 0,
    "driver": driver_is_wrong,
    "build": lambda f: f.torch_cuda is None and f.torch_hip is None,
}


def verdict(facts):
    if facts.tiny_op == "ok":  # a machine that works needs no cause
        return "fine"
    for name in ["build", "driver", "visibility", "architecture", "usability"]:
        if checks[name](facts):
            return name
    return "fine"

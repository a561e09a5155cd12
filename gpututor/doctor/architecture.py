"""The fourth verdict: whether this build holds code for this GPU."""

from __future__ import annotations

from collections.abc import Iterator

from . import advice
from .advice import dotted
from .case import Case, Gpu
from .finding import Finding
from .versions import has_code


def architecture(case: Case) -> Iterator[Finding]:
    """Find GPUs that the build has no code for."""
    gpus = visible(case)
    without = [gpu for gpu in gpus if _code(case, gpu) == ""]
    has = "the build has " + " ".join(case.arch_list)
    named = [f"{gpu.name} has capability {dotted(gpu.capability)}" for gpu in without]
    if case.error[0] == "architecture":
        known = without or (gpus if len(gpus) == 1 else [])
        yield Finding(
            "architecture",
            "This PyTorch has no code for this GPU.",
            (case.text, *named, *([has] if case.arch_list else [])),
            advice.code_for(case, known[0].capability if known else ()),
            "certain",
        )
        return
    if without and len(without) == len(gpus):
        other = bool(case.error[0]) or case.operation == "timeout"
        yield Finding(
            "architecture",
            "This PyTorch has no code for this GPU.",
            (*named, has),
            advice.code_for(case, without[0].capability),
            "likely" if case.available is not False and not other else "possible",
        )
    elif gpus and all(_code(case, gpu) == "PTX" for gpu in gpus) and _behind(case):
        yield Finding(
            "driver",
            "This GPU needs code that the driver must compile, and the driver is older than the "
            "build's CUDA.",
            (
                f"the driver runs up to CUDA {dotted(case.driver_cuda)}",
                f"this PyTorch is built for CUDA {dotted(case.build)}",
                has,
            ),
            advice.newer_driver(case),
            "likely" if case.available and case.operation == "error" else "possible",
        )


def notes(case: Case) -> Iterator[Finding]:
    """Find GPUs without code beside one that works."""
    without = [gpu for gpu in visible(case) if _code(case, gpu) == ""]
    if without and len(without) < len(case.gpus):
        named = [f"{gpu.name} has capability {dotted(gpu.capability)}" for gpu in without]
        yield Finding(
            "architecture",
            "Another GPU of this machine has no code in this PyTorch.",
            tuple(named),
            advice.code_for(case, without[0].capability),
            "likely",
        )


def visible(case: Case) -> list[Gpu]:
    """Return the GPUs that the variables leave; all of them where that is not sure."""
    gpus = list(case.gpus)
    for _, value in case.variables:
        chosen = case.choice(value).chosen
        # CUDA counts the fastest first, the driver's list by bus: a number names the same GPU
        # in both only if the order is asked for, or if all are alike.
        sure = case.env.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        if chosen and all(entry.isdigit() for entry in chosen):
            if sure or len({gpu.capability for gpu in gpus}) == 1:
                gpus = [gpus[int(entry)] for entry in chosen if int(entry) < len(gpus)] or gpus
        elif picked := [gpu for gpu in gpus if gpu.uuid and gpu.uuid in chosen]:
            gpus = picked
    return gpus


def _code(case: Case, gpu: Gpu) -> str | None:
    if case.kind != "cuda" or not gpu.capability:
        return None
    return has_code(case.arch_list, gpu.capability)


def _behind(case: Case) -> bool:
    return bool(case.driver_cuda and case.build and case.driver_cuda[:2] < case.build[:2])

"""From facts to ranked findings. Nothing here looks at the machine."""

from __future__ import annotations

from collections.abc import Iterator

from . import architecture, usability
from .advice import dotted
from .build import build
from .case import Case, read
from .driver import driver
from .facts import Facts
from .finding import CONFIDENCES, VERDICTS, Finding
from .versions import driver_fits, has_code
from .visibility import variables, visibility
from .visible import count


def diagnose(facts: Facts) -> list[Finding]:
    """Say why there is no GPU, or that one works.

    Parameters
    ----------
    facts : Facts
        What is known. Whatever is unknown, missing or absurd in it is left aside.

    Returns
    -------
    list of Finding
        Never empty. The first is the cause: what is most certain, and among equals what comes
        first in the chain build, driver, visibility, architecture, usability. One of them is
        ``"fine"`` exactly when a GPU can be used; what follows it are remarks.

    Raises
    ------
    TypeError
        When `facts` are no facts.
    """
    if not isinstance(facts, Facts):
        raise TypeError(f"give the facts that collect() or Facts.load() returns, not {facts!r:.60}")
    case = read(facts)
    if works(case):
        late = [found for found in variables(case) if case.late]
        return [*late, _fine(case), *_remarks(case)]
    found = [
        *build(case),
        *driver(case),
        *visibility(case),
        *architecture.architecture(case),
        *usability.usability(case),
    ]
    found.sort(key=lambda item: (CONFIDENCES.index(item.confidence), VERDICTS.index(item.verdict)))
    return found or [_unexplained(case)]


def works(case: Case) -> bool:
    """Return whether a GPU can be used, as far as the facts say."""
    if case.operation == "ok":
        return case.kind in ("cuda", "rocm") or case.available is True or bool(case.count)
    if case.operation or case.available is not True or case.error[0]:
        return False
    gpus = architecture.visible(case)
    codes = [has_code(case.arch_list, gpu.capability) for gpu in gpus] if _cuda(case) else []
    forbidden = bool(gpus) and all(gpu.mode == "prohibited" for gpu in gpus)
    return not forbidden and not (codes and all(code == "" for code in codes))


def _cuda(case: Case) -> bool:
    return case.kind == "cuda"


def _fine(case: Case) -> Finding:
    evidence = []
    if case.operation == "ok":
        evidence.append("a small addition on the GPU gave the right answer")
    else:
        evidence.append("torch.cuda.is_available() is True; no operation was tried")
    if case.count:
        evidence.append(f"torch.cuda.device_count() is {case.count}")
    if case.count == 0 and case.operation == "ok":
        evidence.append("torch.cuda.device_count() is 0, and yet the GPU works")
    if case.kind == "rocm":
        evidence.append("the GPU is AMD's: in a ROCm build torch.cuda stands for it")
    fits = driver_fits(case.build, case.driver_cuda, case.driver, case.driver_system)
    if _cuda(case) and case.driver_cuda and case.driver_cuda[:2] < case.build[:2] and fits:
        evidence.append(
            f"the driver runs CUDA {dotted(case.driver_cuda)} and the build is for "
            f"{dotted(case.build)}: the same major version is enough"
        )
    evidence += [*_served(case)]
    return Finding(
        "fine",
        "A GPU works here.",
        tuple(evidence),
        ('Use it: device = torch.device("cuda").',),
        "certain" if case.operation == "ok" else "likely",
    )


def _served(case: Case) -> Iterator[str]:
    """Say that a number missing in the build's list is no fault."""
    for gpu in architecture.visible(case)[:1] if _cuda(case) else ():
        own = f"sm_{gpu.capability[0]}{gpu.capability[1]}" if gpu.capability else ""
        code = has_code(case.arch_list, gpu.capability)
        if code and own not in case.arch_list:
            yield f"the build has no {own}, and needs none: other {code} in it runs on this GPU"


def _remarks(case: Case) -> Iterator[Finding]:
    for name, value in case.variables:
        choice = case.choice(value)
        if case.late:
            if len(case.gpus) > 1 and case.count == len(choice.chosen) != len(case.gpus):
                yield Finding(
                    "visibility",
                    f"{name} may have been set too late: CUDA had started in this process.",
                    (f"{name}={value!r}", "CUDA was initialised before"),
                    ("Set it before torch first asks for a GPU, best before Python starts.",),
                    "possible",
                )
        elif choice.why and choice.chosen and len(choice.chosen) < len(case.gpus):
            yield Finding(
                "visibility",
                f"{name} shows {count(len(choice.chosen))} of {len(case.gpus)}.",
                (f"{name}={value!r}", choice.why),
                ("Correct the list before Python starts, if you want the others too.",),
                "certain",
            )
        elif _renumbered(choice.chosen):
            yield Finding(
                "visibility",
                f'torch counts the GPUs that {name} leaves from 0: the first is "cuda:0".',
                (f"{name}={value!r}",),
                ("Use the numbers that torch gives, not those in the variable.",),
                "certain",
            )
    names = {gpu.name for gpu in case.gpus}
    if len(names) > 1 and case.env.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and _cuda(case):
        yield Finding(
            "visibility",
            "torch counts the fastest GPU first, nvidia-smi counts by slot: numbers may differ.",
            ("the GPUs differ: " + ", ".join(sorted(names)),),
            (
                "Set CUDA_DEVICE_ORDER=PCI_BUS_ID before Python starts if the numbers must "
                "agree, and tell GPUs apart by name.",
            ),
            "certain",
        )
    yield from architecture.notes(case)
    yield from usability.notes(case)


def _renumbered(chosen: tuple[str, ...]) -> bool:
    numbers = [int(entry) for entry in chosen if entry.isdigit()]
    return numbers != list(range(len(numbers)))


def _unexplained(case: Case) -> Finding:
    evidence = [case.text] if case.text else []
    if case.available is not None:
        evidence.append(f"torch.cuda.is_available() is {case.available}")
    if case.available or case.operation:
        return Finding(
            "usability",
            "A GPU seems to be there, and nothing says why it does not work.",
            tuple(evidence),
            ("Run the doctor on that machine again, in a fresh process, and read nvidia-smi.",),
            "possible",
        )
    return Finding(
        "driver",
        "Nothing known explains it. A driver in a bad state looks like this."
        if case.driver_seen or case.jetson
        else "Too little is known to say.",
        tuple(evidence) or ("nothing else is known",),
        (
            "Restart the computer (after sleep: sudo rmmod nvidia_uvm; sudo modprobe nvidia_uvm), "
            "and run the doctor again."
            if case.driver_seen and case.driver_system == "linux"
            else "Run the doctor on that machine again, in a fresh process.",
        ),
        "possible",
    )

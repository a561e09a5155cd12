"""The checks of lesson 07 take right answers, and say what is wrong with the others."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from verdicts import is_right, is_wrong

from gpututor.exercises.solutions.lesson_07 import Checkpoint, train_quietly

pytestmark = pytest.mark.usefixtures("simulated")


# -- 07-resume -------------------------------------------------------------------------------


def saving(**left_out: Any) -> Any:
    """Return a checkpoint that saves something else instead of a part."""

    class Partly(Checkpoint):
        @staticmethod
        def save(file: Any, net: Any, optimizer: Any, step: int) -> None:
            parts = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save({**parts, **left_out}, file)

    return Partly


class WithoutTheOptimizer(Checkpoint):
    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        saved = torch.load(file, map_location="cpu")
        net.load_state_dict(saved["net"])
        return saved["step"]


class WithoutTheNetwork(Checkpoint):
    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        saved = torch.load(file, map_location="cpu")
        optimizer.load_state_dict(saved["optimizer"])
        return saved["step"]


class WithoutTheStatistics(Checkpoint):
    """The running mean of a batch norm is a buffer, not a parameter."""

    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        saved = torch.load(file, map_location="cpu")
        names = [name for name, _ in net.named_parameters()]
        net.load_state_dict({name: saved["net"][name] for name in names}, strict=False)
        optimizer.load_state_dict(saved["optimizer"])
        return saved["step"]


class MovesTheNetwork(Checkpoint):
    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        step = Checkpoint.resume(file, net, optimizer)
        if step == 6:  # the checkpoint from the GPU
            net.to("cuda")
        return step


class ForgetsTheGpu(Checkpoint):
    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        saved = torch.load(file, map_location="cpu")
        if saved["step"] != 6:
            net.load_state_dict(saved["net"])
            optimizer.load_state_dict(saved["optimizer"])
        return saved["step"]


class Later(Checkpoint):
    """Keeps what it was given, which the training goes on to change."""

    seen: tuple[Any, ...] = ()

    @staticmethod
    def save(file: Any, net: Any, optimizer: Any, step: int) -> None:
        Later.seen = (net, optimizer, step)
        file.write(b"see above")

    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        whole = io.BytesIO()
        Checkpoint.save(whole, *Later.seen)
        whole.seek(0)
        return Checkpoint.resume(whole, net, optimizer)


class SavesNothing(Checkpoint):
    @staticmethod
    def save(file: Any, net: Any, optimizer: Any, step: int) -> None:
        pass


class Positions:
    """Another form: a tuple, in a file."""

    @staticmethod
    def save(file: Any, net: Any, optimizer: Any, step: int) -> None:
        torch.save((step, optimizer.state_dict(), net.state_dict()), file)

    @staticmethod
    def resume(file: Any, net: Any, optimizer: Any) -> Any:
        step, of_optimizer, of_net = torch.load(file, map_location="cpu")
        optimizer.load_state_dict(of_optimizer)
        net.load_state_dict(of_net)
        return step


# -- 07-waits --------------------------------------------------------------------------------


def loud(net: Any, optimizer: Any, batches: Any) -> Any:
    total, right = 0.0, 0
    for x, target in batches:
        output = net(x)
        loss = cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (output.argmax(1) == target).sum().item()
    return total / len(batches), right


def one_number_more(net: Any, optimizer: Any, batches: Any) -> Any:
    found = train_quietly(net, optimizer, batches)
    next(net.parameters()).sum().item()
    return found


def tensors(net: Any, optimizer: Any, batches: Any) -> Any:
    return tuple(map(torch.tensor, train_quietly(net, optimizer, batches)))


def one_tensor(net: Any, optimizer: Any, batches: Any) -> Any:
    mean, right = train_quietly(net, optimizer, batches)
    return mean, torch.tensor(right)


def total(net: Any, optimizer: Any, batches: Any) -> Any:
    mean, right = train_quietly(net, optimizer, batches)
    return mean * len(batches), right


def one_more_right(net: Any, optimizer: Any, batches: Any) -> Any:
    mean, right = train_quietly(net, optimizer, batches)
    return mean, right + 1


def changed_after(net: Any, optimizer: Any, batches: Any) -> Any:
    found = train_quietly(net, optimizer, batches)
    optimizer.step()
    return found


def in_one_copy(net: Any, optimizer: Any, batches: Any) -> Any:
    sums = torch.zeros(2, device="cuda")
    for x, target in batches:
        output = net(x)
        loss = cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums += torch.stack((loss.detach(), (output.argmax(1) == target).sum().float()))
    loss, right = sums.tolist()
    return loss / len(batches), int(right)


WRONG: list[tuple[str, Any, str, str]] = [
    ("07-resume", saving(step=2), "the step that was saved, 3", "2"),
    ("07-resume", saving(step=None), "the step that was saved, 3", "None"),
    ("07-resume", WithoutTheOptimizer, "to the last bit", "0.weight differs"),
    ("07-resume", WithoutTheNetwork, "to the last bit", "0.weight differs"),
    ("07-resume", WithoutTheStatistics, "to the last bit", "1.running_mean differs"),
    ("07-resume", Later, "to the last bit", "0.weight differs"),
    ("07-resume", MovesTheNetwork, "stays on the host", "moved it to the GPU"),
    ("07-resume", ForgetsTheGpu, "the weights of the GPU's training", "others"),
    ("07-resume", SavesNothing, "", "still to be written"),
    ("07-resume", object(), "a class with save and resume", "has no save"),
    ("07-waits", loud, "at most 2 copies to the host", "12 copies to the host"),
    ("07-waits", one_number_more, "at most 2 copies to the host", "3 copies to the host"),
    ("07-waits", tensors, "two numbers of Python's", "a tensor"),
    ("07-waits", one_tensor, "two numbers of Python's", "a tensor"),
    ("07-waits", total, "a mean loss of", "("),
    ("07-waits", one_more_right, "right answers", "("),
    ("07-waits", changed_after, "the same trained weights", "other weights"),
    ("07-waits", lambda net, optimizer, batches: 1.0, "the mean loss and the number", "1.0"),
    ("07-waits", lambda net, optimizer, batches: (1, 2, 3), "the mean loss", "(1, 2, 3)"),
    ("07-waits", lambda net, optimizer, batches: None, "", "still to be written"),
]
RIGHT = [("07-resume", Positions), ("07-waits", in_one_copy)]


@pytest.mark.parametrize(("name", "answer", "expected", "seen"), WRONG)
def test_a_wrong_answer_is_told_why(name: str, answer: Any, expected: str, seen: str) -> None:
    is_wrong(name, answer, expected, seen)


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_answer_is_right(name: str, answer: Any) -> None:
    is_right(name, answer)

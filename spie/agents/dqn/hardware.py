"""What the deep agent asks of the machine: threads, a device, memory that stays, bf16."""

import ctypes
import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def on_threads(n: int) -> Iterator[None]:
    """On n threads of torch within: results are the same to the bit only on equally many."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_of(name: str) -> str:
    """A device that there is; "auto": cuda where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if torch.device(name).type not in ("cpu", "cuda", "mps", "xpu"):
            raise RuntimeError("nothing can be computed there")
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, TypeError) as error:
        why = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device {name} cannot be used here ({why}); use auto, cpu or cuda") from error
    return name


@functools.cache
def keep_memory() -> None:
    """Have the C library keep what torch gives back: to get it again, zeroed page by page, is a tenth of an update."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    mallopt(-3, 2**26)  # M_MMAP_THRESHOLD: above activations and gradients, below segments of the replay
    mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


@functools.cache
def check_bf16() -> None:
    """Raise ValueError where bf16 would kill the process.

    Some virtual machines announce a matrix unit (AMX) that they do not have. The first product then ends in an illegal
    instruction, which no program survives; so a second one tries it.
    """
    program = "import torch; torch.ones(32, 64, dtype=torch.bfloat16) @ torch.ones(64, 32, dtype=torch.bfloat16)"
    if subprocess.run([sys.executable, "-c", program], capture_output=True).returncode != 0:
        raise ValueError(
            "bf16 crashes on this processor; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment before the "
            "program starts, or use precision=fp32"
        )

"""The ceiling of input: one file read from beginning to end, over and over. Nothing is trained.

python main.py --size-mib 256 [--cold]
"""

import os
import tempfile
from collections.abc import Iterator
from typing import Any, ClassVar

from cotenant.bench import Benchmark, Run, flag, main

MIB = 1 << 20


class FileReading(Benchmark):
    """One step = one block of the file in this process's memory."""

    item = "byte"
    fixed: ClassVar[dict[str, Any]] = {"cached_batch": False}

    batch_size: int = flag(16 * MIB, "--batch-size", "-b", help="bytes in one block")
    size_mib: int = flag(256, help="of the file, made of random bytes where the tenant may write")
    cold: bool = flag(False, help="take each block out of the page cache: then the disk is read, not memory")

    def build(self, run: Run) -> None:
        # The file has no name: it vanishes with this process, however the process ends.
        self.file = tempfile.TemporaryFile(dir=os.environ.get("TEMP_DIRECTORY"))
        for _ in range(self.size_mib):
            self.file.write(os.urandom(MIB))
        self.file.flush()
        # Dirty pages cannot be dropped.
        os.fsync(self.file.fileno())
        self.blocks = max(1, self.size_mib * MIB // self.batch_size)

    def batches(self, run: Run) -> Iterator[memoryview]:
        block = memoryview(bytearray(min(self.batch_size, self.size_mib * MIB)))
        descriptor, size = self.file.fileno(), len(block)
        while True:
            for start in range(0, self.blocks * size, size):
                if self.cold:
                    os.posix_fadvise(descriptor, start, size, os.POSIX_FADV_DONTNEED)
                read = os.preadv(descriptor, [block], start)
                yield block[:read]

    def step(self, run: Run, batch: memoryview) -> None:
        """Do nothing: the work was to read the block."""


if __name__ == "__main__":
    main(FileReading)

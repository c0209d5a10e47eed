"""Pressure on a disk: blocks of a file, read past the page cache from random places. An item is a MB.

python main.py --level 50 --size-mib 256
"""

import mmap
import os
import random
import tempfile

from cotenant.bench import Run, UnsupportedError, flag, main
from cotenant.bench.pressure import Pressure, bytes_from_storage

MIB = 1 << 20
REMEDY = "Let BASE lie on a disk: its temporary directory has the file."


class DiskPressure(Pressure):
    """Work is one block by O_DIRECT."""

    item = "MB"

    size_mib: int = flag(256, help="of the file, made of random bytes where the tenant may write")
    block_kib: int = flag(1024, help="of one read, in units of 4 KiB")

    def prepare(self, run: Run) -> None:
        with tempfile.NamedTemporaryFile(dir=os.environ.get("TEMP_DIRECTORY")) as file:
            for _ in range(self.size_mib):
                file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())
            try:
                self.descriptor = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
            except OSError as error:
                raise UnsupportedError(f"The file system has no O_DIRECT: {error.strerror}.", REMEDY) from error
        # The nameless file vanishes with this process. Mapped memory begins at a page, as O_DIRECT needs.
        self.block = mmap.mmap(-1, self.block_kib << 10)
        self.blocks = max(1, self.size_mib * MIB // len(self.block))
        self.chance = random.Random(run.seed)
        before = bytes_from_storage()
        if before is not None and self.work() * 1e6 > (bytes_from_storage() or 0) - before:
            raise UnsupportedError("A block was read and none came from storage: no disk is below.", REMEDY)

    def work(self) -> float:
        place = self.chance.randrange(self.blocks) * len(self.block)
        return os.preadv(self.descriptor, [self.block], place) / 1e6


if __name__ == "__main__":
    main(DiskPressure)

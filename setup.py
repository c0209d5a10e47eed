"""Adds the benchmarks, job files and targets of a checkout, which are outside the package, to its wheel."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = ("baselines.json", "profiles/*", "targets/*", "targets/published/*", "tasks/**/*.py", "tasks/**/*.sh")


class BuildWithSuite(build_py):
    """Copies benchmarks, job files and targets to `cotenant/shipped`, where `cotenant.checkout` finds them."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source, target in self._shipped().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return super().get_outputs(include_bytecode) + list(self._shipped().values())

    def get_source_files(self) -> list[str]:
        return super().get_source_files() + [str(Path(source).relative_to(ROOT)) for source in self._shipped()]

    def _shipped(self) -> dict[str, str]:
        """Return the path of each shipped file of a checkout, and its place in the build folder."""
        files = sorted(path for pattern in SHIPPED for path in ROOT.glob(pattern) if path.is_file())
        place = Path(self.build_lib, "cotenant", "shipped")
        return {str(path): str(place / path.relative_to(ROOT)) for path in files}


setup(cmdclass={"build_py": BuildWithSuite})

"""Answers `import common`: this folder holds the package, and is none."""

raise ImportError("There is no package 'common': from cotenant.chrono import MultiStageChrono")

"""`--name` and `--exclude`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.errors import CotenantError
from cotenant.suite.jobfile import Job, select


def job(name: str, stem: str = "") -> Job:
    return Job(name, "x", (), "student", stem=stem or name)


JOBS = (job("vae"), job("dcgan"), job("resnet18"), job("vae", "vae-2"), job("resnet50"), job("a,b"), job("x[1]"))


def test_selection():
    for names, excludes, stems in [
        ([], [], ["vae", "dcgan", "resnet18", "vae-2", "resnet50", "a,b", "x[1]"]),
        (["dcgan"], [], ["dcgan"]),
        (["vae"], [], ["vae", "vae-2"]),
        (["vae-2"], [], ["vae-2"]),
        (["resnet*"], [], ["resnet18", "resnet50"]),
        (["resnet?8"], [], ["resnet18"]),
        (["resnet[15]*"], [], ["resnet18", "resnet50"]),
        (["resnet50,dcgan"], [], ["dcgan", "resnet50"]),
        (["resnet50", "dcgan"], [], ["dcgan", "resnet50"]),
        ([" dcgan , resnet50,"], [], ["dcgan", "resnet50"]),
        (["dcgan,dcgan"], [], ["dcgan"]),
        (["a,b"], [], ["a,b"]),
        (["x[1]"], [], ["x[1]"]),
        ([], ["vae,resnet*,a?b", "x*"], ["dcgan"]),
        (["vae"], ["vae-2"], ["vae"]),
        (["*"], ["vae", "dcgan"], ["resnet18", "resnet50", "a,b", "x[1]"]),
        (["dcgan"], ["vae"], ["dcgan"]),
    ]:
        assert [job.stem for job in select(JOBS, names, excludes)] == stems


def test_refusals():
    for names, excludes, message in [
        (["resnet5"], [], "--name: no job matches 'resnet5'. Did you mean 'resnet50'? The jobs are vae, dcgan, "),
        (["vae,zzz"], [], "--name: no job matches 'zzz'. The jobs are vae, dcgan, resnet18, vae-2, resnet50"),
        (["VAE"], [], "--name: no job matches 'VAE'."),
        (["q*"], [], "--name: no job matches 'q*'."),
        ([""], [], "--name: no job matches ''."),
        ([","], [], "--name: no job matches ','."),
        ([], ["dgcan"], "--exclude: no job matches 'dgcan'. Did you mean 'dcgan'?"),
        ([], ["*"], "--exclude leaves no job to run. The jobs are vae,"),
        (["dcgan"], ["dc*"], "--exclude leaves no job to run."),
    ]:
        with pytest.raises(CotenantError) as caught:
            select(JOBS, names, excludes)
        assert message in str(caught.value)


PATTERNS = st.lists(
    st.one_of(st.text(max_size=6), st.sampled_from(["*", "vae", "res*", "x[", "[!v]*", "vae,dcgan"])), max_size=3
)


@given(PATTERNS, PATTERNS)
def test_the_order_of_the_file_is_kept(names, excludes):
    try:
        chosen = select(JOBS, names, excludes)
    except CotenantError:
        return
    assert chosen
    assert list(chosen) == [job for job in JOBS if job in chosen]
    assert set(chosen) <= set(select(JOBS, names))


@given(st.lists(st.sampled_from(JOBS), min_size=1, unique=True))
def test_the_stems_of_a_choice_choose_it_again(chosen):
    again = {job.stem for job in select(JOBS, [job.stem for job in chosen])}
    assert again >= {job.stem for job in chosen}
    assert again - {job.stem for job in chosen} <= {"vae-2"}

"""What Dockerfiles and the workflow of a release name exists here; neither Docker nor GitHub is asked."""

import fnmatch
import re
import shlex
import subprocess

import pytest
import yaml
from make_flags_page import project
from pages import ROOT

DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def instructions(dockerfile):
    """Each as its name and the rest."""
    text = re.sub(r"^#.*\n", "", dockerfile.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(" ", 1)) for line in text.splitlines() if line]


def copied(dockerfile):
    """Files and folders of the repository, by where they are copied to."""
    sources = {}
    for name, rest in instructions(dockerfile):
        if name == "COPY":
            *paths, target = shlex.split(rest)
            sources.update({path: f"{target}/{path}" if target.endswith("/") else target for path in paths})
    return sources


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.suffix)
def test_what_a_dockerfile_names_exists(dockerfile):
    text = dockerfile.read_text()
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in copied(dockerfile):
        assert (ROOT / path).exists(), path
        assert any(fnmatch.fnmatch(path, pattern) for pattern in let_in), f"{path} is not in the build context"
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", text)
    assert set(extras.split(",")) <= set(project()["optional-dependencies"])
    (torch,) = re.findall(r"pip install '(torch[^']*)'", text)
    assert torch in project()["dependencies"]
    told = dict(instructions(dockerfile))
    assert told["ENTRYPOINT"] == '["sf-train"]'
    assert told["USER"] != "root"
    assert told["VOLUME"] == f"{told['WORKDIR']}/train_dir"


def test_what_the_workflow_of_a_release_names_exists():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    programs = {program for line in lines for program in re.findall(r"\.venv/bin/(sf-\w+)", line)}
    assert programs
    assert programs <= set(project()["scripts"])
    targets = [target for line in lines for target in re.findall(r"^make (\w+)", line)]
    assert targets == ["release"]
    subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, check=True, capture_output=True)
    assert any(f"'{torch}'" in line for torch in project()["dependencies"] for line in lines if "pip install" in line)
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"}  # of trusted publishing: no token is stored
    assert [jobs[job].get("needs") for job in ("publish", "test")] == ["test", "build"]

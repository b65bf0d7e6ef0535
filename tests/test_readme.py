"""What the README shows in Python runs, and gives what it says."""

import re
from pathlib import Path

import pytest


@pytest.mark.slow
def test_python_snippets(capsys, tmp_path, monkeypatch):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    monkeypatch.chdir(tmp_path)  # the snippets write files
    code = "\n".join(
        line[4:] for line in text.splitlines()
        if line.startswith("    ") and not re.match(r" {4}(spinodal|python3) ", line)
    )  # fmt: skip
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["found"].value == pytest.approx(1.2515356, abs=1e-5)
    kinds = [e.kind for e in names["diagram"].events]
    assert kinds == ["first-order", "fold", "pitchfork"]
    assert names["line"].ends[1]["values"]["T"] == pytest.approx(1 / 3, abs=1e-6)
    assert "sample complexity" in capsys.readouterr().out
    gap = names["gap"].sel(omega=0.3)
    assert float(gap.sel(alpha=1.0)) > 0 > float(gap.sel(alpha=1.5)) and names["better"].any()

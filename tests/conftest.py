"""Shared problems: compiled once a session."""

import pytest

from numerics.branches import compiled
from theory.models import get


@pytest.fixture(scope="session")
def attention_model():
    return get("attention")


@pytest.fixture(scope="session")
def semantic(attention_model):
    return compiled(attention_model, "semantic")


@pytest.fixture(scope="session")
def positional(attention_model):
    return compiled(attention_model, "positional")


@pytest.fixture(scope="session")
def full(attention_model):
    return compiled(attention_model)

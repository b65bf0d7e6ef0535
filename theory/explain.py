"""The derivation written out: LaTeX that can be pasted into a paper, and a step-by-step account."""

from __future__ import annotations

import sympy as sp

from theory.nodes import GaussianExpectation, Moreau
from theory.system import SaddlePointSystem


def _tex(expression) -> str:
    return sp.latex(expression, mul_symbol=None)


def latex(system: SaddlePointSystem) -> str:
    """Free energy and saddle-point equations as an ``align`` environment."""
    arguments = ", ".join(_tex(x) for x in (*system.unknowns, *system.conjugates))
    rows = [rf"E({arguments}) &= {_tex(system.energy)}"]
    if system.form == "gradient":
        rows += [rf"0 = \partial_{{{_tex(x)}}} E &= {_tex(e)}" for x, e in system.updates.items()]
    else:
        sides = [*system.conjugates.items(), *system.updates.items()]
        rows += [rf"{_tex(x)} &= {_tex(e)}" for x, e in sides]
    body = " \\\\\n".join(rows)
    return f"\\begin{{align}}\n{body}\n\\end{{align}}"


def explain(system: SaddlePointSystem) -> str:
    """Markdown: what is extremised, over what, by which rules, and what comes out."""
    model = system.model
    text = [f"# {model.title}"]
    if model.reference:
        text.append(f"Reference: {model.reference}.")
    text += [f"*{key.capitalize()}.* {note}" for key, note in model.notes.items()]
    text += ["## Free energy", _extremum(system), _display(rf"E = {_tex(system.energy)}")]
    text += _measures(system)
    text += _ansaetze(system)
    text += _equations(system)
    text += _observables(system)
    text += _parameters(system)
    return "\n\n".join(text) + "\n"


def _display(body: str) -> str:
    return f"$$\n{body}\n$$"


def _names(symbols) -> str:
    return ", ".join(f"${_tex(x)}$" for x in symbols)


def _extremum(system) -> str:
    over = f"The free energy is stationary in the order parameters {_names(system.unknowns)}"
    if system.conjugates:
        over += f" and their conjugates {_names(system.conjugates)}"
    return over + "."


def _measures(system) -> list[str]:
    text = []
    nodes = {node.measure: node for node in system.expectations}
    for node in nodes.values():
        mean = sp.Matrix(list(node.mean))
        text += [
            rf"Expectations over {_names(node.variables)}, jointly Gaussian:",
            _display(rf"\mu = {_tex(mean.T)}, \qquad \Sigma = {_tex(sp.Matrix(node.covariance))}"),
        ]
    envelopes = set().union(*(n.atoms(Moreau) for n in system.energy.atoms(GaussianExpectation)))
    for moreau in envelopes:
        text += [
            "Moreau envelope (global minimum over "
            f"{_names(moreau.minimiser)}, response $V = {_tex(sp.Matrix(moreau.response))}$):",
            _display(
                r"\mathcal M_V(W; Z) = \min_H\ \tfrac12 (H-W)^T V^{-1} (H-W) + \ell(H, Z), \qquad "
                r"g = V^{-1}(H^\star - W),"
            ),
            _display(rf"\ell(H, Z) = {_tex(moreau.loss)}"),
            "Rules used: envelope theorem, $\\partial_{W_i} \\mathcal M = -g_i$ and "
            "$\\partial_{V_{ij}} \\mathcal M = -\\tfrac12 g_i g_j$; Bonnet and Price for "
            "derivatives with respect to the Gaussian mean and covariance; Stein's identity "
            "$E[\\partial_i f] = E[f\\, (\\Sigma^{-1}(x-\\mu))_i]$ for second derivatives: "
            "$g$ jumps where two proximal points exchange.",
        ]
    return text


def _ansaetze(system) -> list[str]:
    if not system.ansaetze:
        return []
    text = ["## Ansatz"]
    for ansatz in system.ansaetze:
        image = ", ".join(f"${_tex(k)} = {_tex(v)}$" for k, v in ansatz.all_substitutions.items())
        why = f" ({ansatz.description})" if ansatz.description else ""
        reason = ", ".join(s.name for s in ansatz.symmetries)
        checked = f" Symmetry checked: {reason}." if reason else ""
        text.append(
            f"**{ansatz.name}**{why}: {image}.{checked} The residuals of the eliminated "
            "equations vanish identically."
        )
    return text


def _equations(system) -> list[str]:
    text = ["## Saddle-point equations"]
    if system.form == "gradient":
        for x, e in system.updates.items():
            text.append(_display(rf"0 = \frac{{\partial E}}{{\partial {_tex(x)}}} = {_tex(e)}"))
        return text
    text.append("Derivatives with respect to the order parameters give the conjugates:")
    text += [_display(f"{_tex(h)} = {_tex(e)}") for h, e in system.conjugates.items()]
    text.append("Derivatives with respect to the conjugates give the order parameters:")
    text += [_display(f"{_tex(x)} = {_tex(e)}") for x, e in system.updates.items()]
    return text


def _observables(system) -> list[str]:
    if not system.observables:
        return []
    text = ["## Observables"]
    text += [
        _display(rf"\text{{{name.replace('_', ' ')}}} = {_tex(e)}")
        for name, e in system.observables.items()
    ]
    return text


def _parameters(system) -> list[str]:
    if not system.parameters:
        return []
    rows = [
        f"* ${_tex(p.symbol)}$ (`{p.name}`): {p.description or 'control parameter'}"
        for p in system.parameters
    ]
    return ["## Parameters", "\n".join(rows)]

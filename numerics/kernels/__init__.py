"""Integration kernels, included as text in every generated module."""

"""Graphical models: plan, fit, inference, draw."""

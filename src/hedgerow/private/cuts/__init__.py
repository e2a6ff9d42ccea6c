"""Where to cut a column, bought with budget: descend a public tree by noisy counts, then settle on leaves."""

"""Methods as published, under the names `aim:paper`, `mst:paper` …: for comparisons with the literature.

They keep their books in zCDP, take the papers' constants, and leave out what Hedgerow adds to the methods of the same
names: denoised columns, shares that follow from public quantities, candidates dropped for their noise. They keep the
same laws, and pass the same audit.
"""

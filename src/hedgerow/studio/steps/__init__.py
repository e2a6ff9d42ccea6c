"""The steps, a module each: what is shown, what a form of it saves, and the command that it is."""

from hedgerow.studio.steps import budget, columns, look, publish, run, table

ROUTES = [*table.ROUTES, *columns.ROUTES, *budget.ROUTES, *run.ROUTES, *look.ROUTES, *publish.ROUTES]

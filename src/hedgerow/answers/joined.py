"""Questions about linked tables: FROM one of them, or JOIN along their keys.

    SELECT bats, AVG(HR) FROM players JOIN batting ON players.id = batting.players_id GROUP BY bats

Every row of a child table has one parent, so a join along keys has the rows of the table furthest down, each with the
columns of those above it. A question is therefore one about a single table whose columns are named TABLE.COLUMN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlglot import exp

from hedgerow.answers.question import DIALECT, Question, parsed, read_question
from hedgerow.errors import OptionError, listing
from hedgerow.schema.column import Column
from hedgerow.schema.links import PERSON, Tables, rows_of


class Joined(NamedTuple):
    """A question about columns named TABLE.COLUMN, and the table whose rows it is about."""

    table: str
    question: Question


def read_joined(text: str, tables: Tables, columns: Mapping[str, Column]) -> list[Joined]:
    """Every SELECT of a text, which semicolons part; `columns` are those that may be asked for."""
    return [_Resolving(tree, tables, columns).joined() for tree in parsed(text)]


def askable(tables: Tables, columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns that questions may speak of: declared ones, and how many rows of a child a row has."""
    shared = {rows_of(tables.parent(name), name) for name in tables.names[1:]}
    aside = tables.generated(columns) - shared
    return {name: column for name, column in columns.items() if name not in aside}


class _Resolving:
    """One SELECT whose names are given their tables."""

    def __init__(self, tree: exp.Expression, tables: Tables, columns: Mapping[str, Column]):
        self._tree, self._tables, self._columns = tree.copy(), tables, columns
        self._text = tree.sql(dialect=DIALECT)
        self._named: dict[str, str] = {}
        """The tables that are spoken of, by the names that they have in the question."""

    def joined(self) -> Joined:
        tree = self._tree
        if not isinstance(tree, exp.Select):
            raise self._refused("a question is one SELECT")
        source = tree.args.get("from") or tree.args.get("from_")
        if source is None or not isinstance(source.this, exp.Table):
            raise self._refused(f"FROM names one of the tables: {listing(self._tables.names)}")
        if self._tables.kept:
            self._take_alone(source.this)
        else:
            self._join(source.this)
        for join in tree.args.get("joins") or ():
            self._join_on(join)
        tree.set("joins", None)
        written = [(item, item.alias_or_name, item.sql(dialect=DIALECT)) for item in tree.expressions]
        self._keep_orders({said: alias if isinstance(item, exp.Alias) else said for item, alias, said in written})
        named = [
            item if isinstance(item, exp.Alias) else exp.alias_(item.copy(), said, quoted=True)
            for item, _, said in written
            if not isinstance(item, exp.Star)
        ]
        if len(named) == len(written):
            tree.set("expressions", named)
        aliases = {item.alias for item in tree.expressions if isinstance(item, exp.Alias)}
        for column in list(tree.find_all(exp.Column)):
            self._resolve(column, aliases)
        last = max(self._named.values(), key=self._tables.names.index)
        question = read_question(tree, self._columns, self._text)
        return Joined(last, question)

    def _take_alone(self, table: exp.Table) -> None:
        """One table whose persons are kept: `person` has a row for each of them, any other name means all rows."""
        if self._tree.args.get("joins"):
            raise self._refused("there is one table here, which is joined to nothing")
        persons = table.name.casefold() == PERSON
        self._named = {name: name for name in self._tables.names if name == PERSON or not persons}
        for column in self._tree.find_all(exp.Column):
            if column.table.casefold() == table.alias_or_name.casefold():
                column.set("table", None)

    def _join(self, table: exp.Expression) -> str:
        if not isinstance(table, exp.Table):
            raise self._refused("JOIN is between tables, not questions")
        alike = [name for name in self._tables.names if name.casefold() == table.name.casefold()]
        if not alike:
            raise self._refused(f'"{table.name}" is none of the tables: {listing(self._tables.names)}')
        name = table.alias_or_name.casefold()
        if name in self._named or alike[0] in self._named.values():
            raise self._refused(f'"{alike[0]}" is joined to itself; a table is joined once')
        self._named[name] = alike[0]
        return alike[0]

    def _join_on(self, join: exp.Join) -> None:
        before = list(self._named.values())
        name = self._join(join.this)
        if join.side or join.kind not in ("", "INNER") or join.args.get("method"):
            raise self._refused(f"of joins only JOIN … ON is known{self._hint()}")
        link = self._tables.links[name]
        below = [other for other in before if self._tables.links[other].parent == name]
        if link.parent in before:
            pair = (str(link.parent), name)
        elif len(below) == 1:
            pair = (name, below[0])
        else:
            raise self._refused(f'no link leads from "{name}" to {listing(before)}{self._hint()}')
        parents = {self._tables.links[each].parent for each in self._named.values()}
        if len(parents) < len(self._named):
            raise self._refused(
                f'"{name}" hangs on the same table as another one that is joined; questions are about one line of '
                f"tables{self._hint()}"
            )
        if not self._on_key(join, pair):
            raise self._refused(f"tables are joined along their keys{self._hint()}")

    def _on_key(self, join: exp.Join, pair: tuple[str, str]) -> bool:
        """Whether a join compares the parent's key with the child's link, and nothing else."""
        key, link = self._tables.links[pair[0]].key, self._tables.links[pair[1]].link
        using, on = join.args.get("using"), join.args.get("on")
        if using:
            return key == link and [each.name for each in using] == [key]
        if not isinstance(on, exp.EQ) or not isinstance(on.left, exp.Column) or not isinstance(on.right, exp.Column):
            return False
        wanted = {(pair[0], key), (pair[1], link)}
        return {self._side(each, wanted) for each in (on.left, on.right)} == wanted

    def _side(self, column: exp.Column, wanted: set[tuple[str, str | None]]) -> tuple[str | None, str | None]:
        """The table and the name of one side of ON; where no table is named, that which has such an id."""
        if column.table:
            return self._named.get(column.table.casefold()), column.name
        found: tuple[str | None, str | None] = next((each for each in wanted if each[1] == column.name), (None, None))
        return found

    def _hint(self) -> str:
        pairs = [
            f"{above} JOIN {name} ON {above}.{self._tables.links[above].key} = {name}.{link.link}"
            for name, link in self._tables.links.items()
            for above in [str(link.parent)]
            if link.parent is not None
        ]
        return f". Hint: FROM {pairs[0]}" + (f", or {listing(pairs[1:])}" if pairs[1:] else "")

    def _keep_orders(self, listed: Mapping[str, str]) -> None:
        """What ORDER BY repeats of the SELECT is sorted by under its name there."""
        clause = self._tree.args.get("order")
        for ordered in clause.expressions if clause else ():
            said = ordered.this.sql(dialect=DIALECT)
            if said in listed:
                ordered.set("this", exp.column(exp.to_identifier(listed[said], quoted=True)))

    def _resolve(self, column: exp.Column, aliases: set[str]) -> None:
        name, table = column.name, column.table
        if table:
            if table.casefold() not in self._named:
                raise self._refused(f'"{table}" is none of the tables of the question: {listing(self._named)}')
            owners = [self._named[table.casefold()]]
        else:
            owners = [
                owner
                for owner in self._named.values()
                if any(known.casefold() == f"{owner}.{name}".casefold() for known in self._columns)
            ]
            if len(owners) != 1 and name in aliases:
                return
            if len(owners) > 1:
                raise self._refused(
                    f'"{name}" is a column of {listing(owners)}. Hint: write '
                    + " or ".join(f"{owner}.{name}" for owner in owners)
                )
        known = [f"{owner}.{name}" for owner in owners] or [f"{next(reversed(self._named.values()))}.{name}"]
        column.replace(exp.column(exp.to_identifier(known[0], quoted=True)))

    def _refused(self, why: str) -> OptionError:
        text = " ".join(self._text.split())
        short = text if len(text) <= 120 else text[:119] + "…"
        return OptionError("unknown-question", f'in "{short}": {why}.')

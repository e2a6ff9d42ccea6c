"""Tables of a cluster whose workers have this package: rows are coded, kept and counted where they are.

`blocks` is how coded rows are kept, `tasks` what a worker does, `persons` how rows of one person come together;
`engine` asks for it. What a task yields is a function of its partition, and only results of tasks that ended are taken.
"""

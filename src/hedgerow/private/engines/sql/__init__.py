"""Tables that stay in a database. `engine` counts them; `database` and the modules named after databases reach them."""

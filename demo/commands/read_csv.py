# SPDX-License-Identifier: Apache-2.0
# Prints the cells that a spreadsheet program would run.
import csv

with open("/work/48221/orders.csv", newline="", encoding="utf-8") as f:
    formulas = [cell for row in csv.reader(f) for cell in row if cell[:1] in "=@" and cell]
for cell in formulas:
    print("formula:", cell)
print("formulas:", len(formulas))

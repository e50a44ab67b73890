# SPDX-License-Identifier: Apache-2.0
# Prints the formulas of the workbook.
import openpyxl

sheet = openpyxl.load_workbook("/work/48221/orders.xlsx").active
formulas = [cell.value for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
for formula in formulas:
    print("formula:", formula)
print("formulas:", len(formulas))

# SPDX-License-Identifier: Apache-2.0
# Prints metadata and text of the invoice.
import pypdf

pdf = pypdf.PdfReader("/work/48221/invoice.pdf", strict=True)
print("pypdf subject:", pdf.metadata.subject)
print("pypdf keywords:", pdf.metadata["/Keywords"])
print(pdf.pages[0].extract_text())

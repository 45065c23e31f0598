"""Programs that write generated files: of the documentation (`make docs`), and the bill of materials."""

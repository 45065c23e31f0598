"""`bridge demo`: everything on one machine, and proof that what arrived is what was sent."""

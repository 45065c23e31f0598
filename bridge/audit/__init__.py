"""`bridge audit`: proves from the topics that nothing was lost, doubled, taken back or left undeclared."""

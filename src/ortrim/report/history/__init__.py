"""`invoke history`: how builds changed over time, and which of them were accepted."""
